/** Stream names as request paths. */
import { isPicoError } from "../lib/errors.ts";
import { checkStreamName, encodeStreamPath } from "../protocol/stream-name.ts";
import { StreamError } from "./stream-error.ts";

/** A name as it is used from here on: a slash is put before one that has none. Throws `bad_request` for what cannot be a name. */
export function normalizeName(name: string): string {
  const whole = name.startsWith("/") ? name : `/${name}`;
  if (whole === "/") throw new StreamError("bad_request", "/ is the list of streams, not a stream");
  try {
    checkStreamName(whole);
  } catch (error) {
    throw isPicoError(error) ? new StreamError("bad_request", error.message, { cause: error }) : error;
  }
  return whole;
}

/** Each segment percent-encoded; empty ones too, because some runtimes fold `//`. */
export function pathOf(name: string): string {
  return encodeStreamPath(name).replace(/\/\/+/g, (slashes) => `/${"%2F".repeat(slashes.length - 1)}`);
}

/** `?a=1&b=2` of what is not undefined; empty if nothing is left. */
export function queryOf(parameters: Readonly<Record<string, string | number | undefined>>): string {
  const parts = Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`],
  );
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}

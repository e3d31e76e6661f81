/** What the protocol names but this server does not offer: refused by name, so that nobody takes silence for yes. */
import { PicoError } from "../lib/errors.ts";
import type { HeaderRecord } from "./exchange.ts";
import type { QueryParameters } from "./query.ts";

/** Headers of schema registry, Kafka, retention, partitions and groups. */
const UNBUILT_HEADERS = /^pico-(schema|kafka|retention|partition|group|generation|member)/;
const UNBUILT_PARAMETERS = ["partition", "partitions", "group", "member", "generation"] as const;

/** Values that mean what is so anyway. */
const HARMLESS: Readonly<Record<string, string>> = {
  "pico-partitions": "1",
  "pico-partition": "0",
  partitions: "1",
  partition: "0",
};

export function refuseUnbuilt(path: string): never {
  throw new PicoError("not_found", `${path} is reserved for a feature that this server does not have`, { what: "path" });
}

export function refuseUnbuiltHeaders(headers: HeaderRecord): void {
  for (const name in headers) {
    if (!name.startsWith("pico-") || !UNBUILT_HEADERS.test(name)) continue;
    const value = headers[name];
    const isOff = name === "pico-schema-validate" && value?.toLowerCase() !== "true";
    if (value === "" || isOff || value === HARMLESS[name]) continue;
    throw new PicoError("bad_request", `header ${name} asks for a feature that this server does not have`, { what: name });
  }
}

export function refuseUnbuiltParameters(query: QueryParameters): void {
  for (const name of UNBUILT_PARAMETERS) {
    const value = query.get(name);
    if (value === undefined || value === "" || value === HARMLESS[name]) continue;
    throw new PicoError("bad_request", `parameter ${name} asks for a feature that this server does not have`, { what: name });
  }
}

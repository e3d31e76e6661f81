/** Flags of every command that talks to a server, and the client settings that they stand for. */
import type { ClientOptions } from "../client/client-options.ts";
import { PicoError } from "../lib/errors.ts";
import { CLIENT_RETRY_TOTAL_MS } from "../lib/limits.ts";
import { defineFlag, type FlagDefinition } from "./flag-definition.ts";
import { type FlagValues, type GivenText, refuseValue } from "./flag-values.ts";
import type { OutageNotice } from "./outage-notice.ts";

export const PROTOCOL_FLAG = defineFlag(
  "--protocol",
  "pico|ds",
  "protocol of the server that is asked, and of --listen of pico serve",
  "pico",
);

/** They stand before the command too. */
export const GLOBAL_FLAGS: readonly FlagDefinition[] = [
  defineFlag(
    "--endpoint",
    "URL",
    "address of the server's stream listener",
    "http://127.0.0.1:4437, with --protocol ds http://127.0.0.1:4438",
  ),
  PROTOCOL_FLAG,
  defineFlag("--token", "TOKEN", "sent to the server as bearer token", null),
];

const RETRY_SECONDS_DEFAULT = CLIENT_RETRY_TOTAL_MS / 1000;
const RETRY_SECONDS_MAX = 24 * 3600;

/** Of commands that bridge an outage of the server. */
export const RETRY_FLAG = defineFlag(
  "--retry-sec",
  "SECONDS",
  "once the server has answered, how long it may be away before the command gives up; 0: not at all",
  RETRY_SECONDS_DEFAULT,
);

export type Protocol = "pico" | "ds";

export interface ClientSettings {
  readonly protocol: Protocol;
  readonly endpoint: string;
  readonly token: string | null;
}

const ENDPOINTS: Readonly<Record<Protocol, string>> = { pico: "http://127.0.0.1:4437", ds: "http://127.0.0.1:4438" };

/** Throws `settings`. */
export function readClientSettings(values: FlagValues): ClientSettings {
  const protocol = values.word("--protocol", ["pico", "ds"]) ?? "pico";
  const given = values.text("--endpoint");
  const endpoint = given === null ? ENDPOINTS[protocol] : parseEndpoint(given);
  return { protocol, endpoint, token: readToken(values) };
}

export function readRetryMs(values: FlagValues): number {
  return (values.number("--retry-sec", 0, RETRY_SECONDS_MAX) ?? RETRY_SECONDS_DEFAULT) * 1000;
}

export function parseEndpoint(given: GivenText): string {
  const url = URL.canParse(given.text) ? new URL(given.text) : null;
  const isAddress = url !== null && /^https?:\/\//i.test(given.text) && url.username === "" && !/[?#\s]/.test(given.text);
  if (!isAddress) throw refuseValue(given, "is no address of a server; write http://HOST:PORT or https://HOST");
  return given.text;
}

/** Never shown, not even where it is refused. */
export function readToken(values: FlagValues, variables?: readonly string[]): string | null {
  const given = values.text("--token", variables);
  if (given === null || /^[\x21-\x7e]+$/.test(given.text)) return given?.text ?? null;
  throw new PicoError("settings", `${given.origin} holds a blank or a character that is not ASCII; give the token alone`, {
    flag: given.origin,
  });
}

/** Without `notice` every request is sent once: an answer that does not come is told at once. */
export function toClientOptions({ endpoint, token }: ClientSettings, notice: OutageNotice | null = null): ClientOptions {
  return {
    url: endpoint,
    ...(token === null ? {} : { token }),
    ...(notice === null ? { retry: { attemptsMax: 1 } } : { retry: notice.retry, seams: { fetch: notice.fetch } }),
  };
}

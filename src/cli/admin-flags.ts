/** Flags of the commands that talk to an admin listener, and the settings that they stand for. */
import { parseEndpoint, readToken } from "./client-flags.ts";
import { defineCallFlag, defineFlag, type FlagDefinition } from "./flag-definition.ts";
import type { FlagValues } from "./flag-values.ts";

const ENDPOINT_DEFAULT = "http://127.0.0.1:9090";
const TOKEN_VARIABLES = ["PICO_ADMIN_TOKEN", "PICO_TOKEN"];

export const ADMIN_FLAGS: readonly FlagDefinition[] = [
  defineFlag("--admin-endpoint", "URL", "address of the node's admin listener", ENDPOINT_DEFAULT),
  { ...defineFlag("--token", "TOKEN", "sent to the node as bearer token", null), variables: TOKEN_VARIABLES },
  defineCallFlag("--json", null, "print the node's answer as it is, in JSON", null),
];

export interface AdminSettings {
  readonly endpoint: string;
  readonly token: string | null;
}

/** Throws `settings`. */
export function readAdminSettings(values: FlagValues): AdminSettings {
  const given = values.text("--admin-endpoint");
  return { endpoint: given === null ? ENDPOINT_DEFAULT : parseEndpoint(given), token: readToken(values, TOKEN_VARIABLES) };
}

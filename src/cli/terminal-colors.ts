/** Colour for people: on a terminal, unless `NO_COLOR` (no-color.org) says otherwise. */
import type { Environment } from "./flag-values.ts";

const CODES = { bold: [1, 22], red: [31, 39], green: [32, 39], yellow: [33, 39] } as const;

export type TerminalStyle = keyof typeof CODES;

export function hasColors(environment: Environment, isTerminal: boolean): boolean {
  return isTerminal && (environment.NO_COLOR ?? "") === "" && environment.TERM !== "dumb";
}

export function paint(style: TerminalStyle, text: string, isColored: boolean): string {
  const [on, off] = CODES[style];
  return isColored ? `\u001b[${on}m${text}\u001b[${off}m` : text;
}

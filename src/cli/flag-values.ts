/**
 * Texts of flags and environment variables, and the values that they stand for. The flag wins over the variable,
 * which wins over the default; a variable that loses is not looked at. Absent, empty and 0 are different cases
 * everywhere: an empty value is an error, except for a switch's variable, where it is "off".
 *
 * Every refusal is a `PicoError` `settings` that names the flag or variable, its value and the remedy.
 */
import { PicoError } from "../lib/errors.ts";
import { isLoopback, type ListenAddress } from "../node/settings.ts";

/** A text and where it comes from: `--node-id` or `PICO_NODE_ID`. */
export interface GivenText {
  readonly text: string;
  readonly origin: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Flags as given on the command line, by name; a list has several texts, a switch none. */
export type GivenFlags = ReadonlyMap<string, readonly string[]>;

const TRUE_WORDS = ["1", "true", "yes", "on"];
const FALSE_WORDS = ["", "0", "false", "no", "off"];

/** `--node-id` -> `PICO_NODE_ID`. */
export function variableOf(flag: string): string {
  return `PICO_${flag.replace(/^--/, "").replaceAll("-", "_").toUpperCase()}`;
}

export function refuseValue(given: GivenText, remedy: string): PicoError {
  return new PicoError("settings", `${given.origin} ${JSON.stringify(given.text)} ${remedy}`, { flag: given.origin });
}

export class FlagValues {
  readonly #flags: GivenFlags;
  readonly #environment: Environment;

  constructor(flags: GivenFlags, environment: Environment) {
    this.#flags = flags;
    this.#environment = environment;
  }

  /** The text of a flag or of the first of its variables that is there, never empty; null where none is given. */
  text(flag: string, variables: readonly string[] = [variableOf(flag)]): GivenText | null {
    const fromFlag = this.#flags.get(flag)?.at(-1);
    const variable = variables.find((name) => this.#environment[name] !== undefined) ?? "";
    const text = fromFlag ?? this.#environment[variable];
    if (text === undefined) return null;
    const given = { text, origin: fromFlag === undefined ? variable : flag };
    if (text === "") throw refuseValue(given, "is empty; give a value or leave it out");
    return given;
  }

  /** A whole number in [min, max], decimal digits only; null where not given. */
  number(flag: string, min: number, max: number): number | null {
    const given = this.text(flag);
    if (given === null) return null;
    const value = /^-?\d+$/.test(given.text) ? Number(given.text) : Number.NaN;
    if (!(value >= min && value <= max)) throw refuseValue(given, `is no whole number from ${min} to ${max}`);
    return value === 0 ? 0 : value;
  }

  /** A number for which 0 means the default, as not giving it does. */
  numberOrDefault(flag: string, max: number, defaultValue: number): number {
    return this.number(flag, 0, max) || defaultValue;
  }

  /** One of `words`; null where not given. */
  word<Word extends string>(flag: string, words: readonly Word[]): Word | null {
    const given = this.text(flag);
    if (given === null) return null;
    const word = words.find((candidate) => candidate === given.text);
    if (word === undefined) throw refuseValue(given, `is unknown; give one of ${words.join(", ")}`);
    return word;
  }

  /** Whether the flag itself is on the command line. */
  isGiven(flag: string): boolean {
    return this.#flags.has(flag);
  }

  /** Whether a switch is on. */
  isOn(flag: string): boolean {
    if (this.#flags.has(flag)) return true;
    const variable = variableOf(flag);
    const text = this.#environment[variable] ?? "";
    if (TRUE_WORDS.includes(text.toLowerCase())) return true;
    if (FALSE_WORDS.includes(text.toLowerCase())) return false;
    throw refuseValue({ text, origin: variable }, "is neither on nor off; give 1, true, yes or on, or 0, false, no or off");
  }

  /** Each text of a list: repeated or several words after the flag, commas in the variable. */
  list(flag: string): readonly GivenText[] {
    const fromFlag = this.#flags.get(flag);
    const variable = variableOf(flag);
    const fromVariable = this.#environment[variable]?.split(",").map((text) => text.trim());
    const origin = fromFlag === undefined ? variable : flag;
    return (fromFlag ?? fromVariable ?? []).map((text) => {
      const given = { text, origin };
      if (text === "") throw refuseValue(given, "is empty; give a value or leave it out");
      return given;
    });
  }
}

/** `host:port`, IPv6 in brackets. */
export function parseListenAddress(given: GivenText): ListenAddress {
  const form = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):(\d{1,5})$/.exec(given.text);
  const host = form?.[1] ?? form?.[2];
  const port = Number(form?.[3]);
  if (host === undefined || !(port <= 65535)) {
    throw refuseValue(given, "is no address to listen on; write HOST:PORT, for example 127.0.0.1:4437 or [::1]:0");
  }
  return { host, port };
}

/** An `http` or `https` URL to which a stream name can be appended. */
export function parseAdvertisedUrl(given: GivenText): string {
  const remedy = "cannot be advertised; write http://HOST:PORT or https://HOST, with a path if need be, without a slash at the end";
  const url = parseUrl(given.text);
  if (url === null || !/^https?:\/\//.test(given.text) || url.username !== "" || /[?#\s]|\/$/.test(given.text)) {
    throw refuseValue(given, remedy);
  }
  return given.text;
}

/** `*`, or an origin as browsers send it: `https://app.example.com`. */
export function parseOrigin(given: GivenText): string {
  if (given.text === "*") return "*";
  const url = parseUrl(given.text);
  const origin = url === null || url.origin === "null" ? null : url.origin;
  if (origin === null || given.text.replace(/\/$/, "").toLowerCase() !== origin) {
    throw refuseValue(given, "is no origin; write SCHEME://HOST[:PORT], for example https://app.example.com, or * for all");
  }
  return origin;
}

/** A host name or address, in lower case and without a port. */
export function parseHost(given: GivenText): string {
  if (!/^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])$/.test(given.text))
    throw refuseValue(given, "is no host name; write it without scheme and port");
  return given.text.toLowerCase();
}

/** An address beyond loopback needs `--insecure-allow-remote`, since whoever reaches it may read and write. */
export function assertBindAllowed(flag: string, listen: ListenAddress, isRemoteAllowed: boolean): void {
  if (isRemoteAllowed || isLoopback(listen.host)) return;
  throw new PicoError(
    "settings",
    `${flag} ${JSON.stringify(listen.host)} can be reached from other machines, and nothing asks them who they are; ` +
      "listen on 127.0.0.1, or add --insecure-allow-remote where the network is trusted",
    { flag, isStartup: true },
  );
}

function parseUrl(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null;
}

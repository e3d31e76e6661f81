/** Values of answer headers, checked: an answer that lacks one is not of the protocol. */
import { parseInstant } from "../protocol/instant.ts";
import { malformed } from "./stream-error.ts";

const DIGITS = /^\d{1,16}$/;

/** A whole number; null where the header is absent. */
export function readNumber(headers: Headers, name: string): number | null {
  const text = headers.get(name);
  if (text === null) return null;
  const value = DIGITS.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(value)) return value;
  throw malformed(`header ${name} is ${JSON.stringify(text)}, which is no whole number below 2^53`);
}

export function requireNumber(headers: Headers, name: string): number {
  const value = readNumber(headers, name);
  if (value === null) throw malformed(`the answer has no header ${name}; is this the listener of another protocol?`);
  return value;
}

export function requireText(headers: Headers, name: string): string {
  const value = headers.get(name);
  if (value === null) throw malformed(`the answer has no header ${name}; is this the listener of another protocol?`);
  return value;
}

export function readFlag(headers: Headers, name: string): boolean {
  return headers.get(name)?.toLowerCase() === "true";
}

/** Milliseconds since 1970; null where the header is absent. */
export function readInstant(headers: Headers, name: string): number | null {
  const text = headers.get(name);
  if (text === null) return null;
  const ms = parseInstant(text);
  if (ms === null) throw malformed(`header ${name} is ${JSON.stringify(text)}, which is no instant`);
  return ms;
}

/** A number of an error answer; undefined where it is absent or none, because an error is told in any case. */
export function tryNumber(headers: Headers, name: string): number | undefined {
  const text = headers.get(name);
  return text !== null && DIGITS.test(text) ? Number(text) : undefined;
}

/** Values as Postgres writes them. */
import { assert } from "../lib/assert.ts";
import { PicoError } from "../lib/errors.ts";

/** A whole number as it is read. Throws `corrupt` beyond 2^53. */
export function toNumber(text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number)) {
    throw new PicoError("corrupt", `the database holds the number ${text}, which is beyond 2^53`, { where: "postgres" });
  }
  return number;
}

/** A whole number as it is bound. */
export function integer(value: number): number {
  assert(Number.isSafeInteger(value), `${value} is a whole number that a double holds exactly`);
  return value;
}

/** `\x00ff`, in memory of their own. */
export function bytesOfText(text: string): Uint8Array {
  return Uint8Array.fromHex(text.slice(2));
}

export function textOfBytes(bytes: Uint8Array): string {
  return `\\x${bytes.toHex()}`;
}

/** An array of one dimension, to be cast to its type. */
export function arrayText(values: readonly (string | number | Uint8Array | null)[]): string {
  return `{${values.map(elementText).join(",")}}`;
}

function elementText(value: string | number | Uint8Array | null): string {
  if (value === null) return "NULL";
  if (typeof value === "number") return String(integer(value));
  // One backslash of the two is that of the array.
  if (typeof value === "string") return `"${value.replace(/["\\]/g, "\\$&")}"`;
  return `"\\\\x${value.toHex()}"`;
}

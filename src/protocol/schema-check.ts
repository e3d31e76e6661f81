/**
 * Checks of headers and query parameters by compiled TypeBox schemas. Values stay the texts they were
 * sent as: a schema says their form, in its `description` also to the client that got it wrong; what a
 * form cannot say (ranges, and what goes together) is checked where they become numbers.
 */
import type { TObject, TProperties } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import { PicoError } from "../lib/errors.ts";
import { shorten } from "./shorten.ts";

export interface CheckedPart<T extends TProperties> {
  readonly schema: TObject<T>;
  readonly compiled: TypeCheck<TObject<T>>;
  readonly part: "header" | "parameter";
}

export function compilePart<T extends TProperties>(part: "header" | "parameter", schema: TObject<T>): CheckedPart<T> {
  return { schema, compiled: TypeCompiler.Compile(schema), part };
}

/** Throws `bad_request` that names the first part that does not fit its schema. Members without a schema are ignored. */
export function checkPart<T extends TProperties>(checked: CheckedPart<T>, values: Readonly<Record<string, unknown>>): void {
  if (checked.compiled.Check(values)) return;
  const failure = checked.compiled.Errors(values).First();
  const name = failure?.path.slice(1) ?? "";
  throw badPart(checked.part, name, failure?.schema.description ?? "a valid value", String(values[name] ?? ""));
}

/** `header Pico-TTL must be a whole number ...; it is "x"`. */
export function badPart(part: "header" | "parameter", name: string, expected: string, value: string): PicoError {
  const shown = part === "header" ? titleCase(name) : name;
  return new PicoError("bad_request", `${part} ${shown} must be ${expected}; it is ${shorten(value)}`, { what: name });
}

/** `pico-ttl` as people write it: `Pico-TTL`. */
export function titleCase(header: string): string {
  return header
    .split("-")
    .map((word) => (word === "ttl" ? word.toUpperCase() : word.charAt(0).toUpperCase() + word.slice(1)))
    .join("-");
}

/** Parts that the descriptions of both stream protocols share. Parameters come from the schemas that check them. */
import { type TProperties, type TSchema, Type as t } from "@sinclair/typebox";
import { STREAM_NAME_BYTES_MAX } from "../lib/limits.ts";
import { type CheckedPart, titleCase } from "../protocol/schema-check.ts";
import type { AnswerAbout, HeaderAbout, OperationAbout, ParameterAbout } from "./operation-about.ts";

export interface StreamOperation {
  readonly path: string;
  readonly method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE" | "OPTIONS";
  readonly about: OperationAbout;
}

/** As `checkStreamName` has it, but for the length in bytes. */
const NAME_PATTERN = "^(?!(.*/)?\\.\\.?(/|$))[^\\u0000-\\u001f\\u007f-\\u009f]+$";

export const NAME_PARAMETER: ParameterAbout = {
  name: "name",
  in: "path",
  description: `Name of the stream without its first slash; the rest of the path, further slashes included, percent-decoded once. With the slash at most ${STREAM_NAME_BYTES_MAX} bytes; no control characters, no segments "." and "..".`,
  schema: t.String({ minLength: 1, maxLength: STREAM_NAME_BYTES_MAX - 1, pattern: NAME_PATTERN }),
  example: "orders/live",
};

export const IF_NONE_MATCH: ParameterAbout = {
  name: "If-None-Match",
  in: "header",
  description: "`ETag` of a page that the client has: answered 304 while it holds.",
  schema: t.String(),
};

export const Bytes = t.String({ format: "binary" });
export const Offset = t.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
export const FlagValue = t.Literal("true");

/** The parameters that a checked part stands for; the body's own type is said with the body. */
export function parametersOf<T extends TProperties>(
  part: CheckedPart<T>,
  examples: Readonly<Record<string, string>> = {},
): ParameterAbout[] {
  return Object.entries<TSchema>(part.schema.properties)
    .filter(([name]) => name !== "content-type")
    .map(([name, { title = "", description = "", ...schema }]) => ({
      name: part.part === "header" ? titleCase(name) : name,
      in: part.part === "header" ? "header" : "query",
      description: description === "a text" ? title : `${title} ${description.charAt(0).toUpperCase()}${description.slice(1)}.`,
      schema: schema as TSchema,
      ...(examples[name] === undefined ? {} : { example: examples[name] }),
    }));
}

export function header(description: string, schema: TSchema = t.String(), isRequired = false): HeaderAbout {
  return { description, schema, isRequired };
}

export const RETRY_AFTER = { "Retry-After": header("Seconds", t.Integer({ minimum: 0 }), true) };

/** 307, for operations that only the owner of a stream answers. */
export const REDIRECT: AnswerAbout = {
  description: "Another node owns the stream: repeat the request there as it was, with its body",
  headers: { Location: header("The stream on the owner's listener of the same protocol", t.String({ format: "uri" }), true) },
};

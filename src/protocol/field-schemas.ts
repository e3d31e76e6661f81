/** TypeBox schemas of single header and parameter texts, used by both protocols and by the API description. */
import { Type } from "@sinclair/typebox";
import { CONTENT_TYPE_BYTES_MAX, PRODUCER_ID_BYTES_MAX, STREAM_SEQ_BYTES_MAX } from "../lib/limits.ts";

const U64_OR_EMPTY = "^(0|[1-9][0-9]{0,19})?$";

/** Empty means absent. */
export const U64Field = (about: string) =>
  Type.Optional(Type.String({ pattern: U64_OR_EMPTY, description: `a whole number from 0 to 2^64-1 in plain digits`, title: about }));

/** Empty is wrong. */
export const RequiredU64Field = (about: string) =>
  Type.Optional(
    Type.String({ pattern: "^(0|[1-9][0-9]{0,19})$", description: `a whole number from 0 to 2^64-1 in plain digits`, title: about }),
  );

/** RFC 9110 leaves control characters out of header values; so do we, as they are echoed. */
export const ContentTypeField = Type.Optional(
  Type.String({
    maxLength: CONTENT_TYPE_BYTES_MAX,
    pattern: "^[\\x20-\\x7e]*$",
    description: `a media type of at most ${CONTENT_TYPE_BYTES_MAX} printable ASCII characters`,
    title: "Type of the records; stored verbatim.",
  }),
);

export const ProducerIdField = Type.Optional(
  Type.String({
    minLength: 1,
    maxLength: PRODUCER_ID_BYTES_MAX,
    description: `a text of 1 to ${PRODUCER_ID_BYTES_MAX} bytes`,
    title: "Identity of the producer; goes with its epoch and sequence.",
  }),
);

export const StreamSeqField = Type.Optional(
  Type.String({
    maxLength: STREAM_SEQ_BYTES_MAX,
    description: `a text of at most ${STREAM_SEQ_BYTES_MAX} bytes`,
    title: "Must rise, byte by byte, with each append that has one.",
  }),
);

export const TextField = (about: string) => Type.Optional(Type.String({ description: "a text", title: about }));

/** `true` in any letter case; every other value, and none, is false. */
export const FlagField = (about: string) => TextField(`${about} Only \`true\`, in any letter case, counts.`);

export function isFlagSet(value: string | undefined): boolean {
  return value !== undefined && value.length === 4 && value.toLowerCase() === "true";
}

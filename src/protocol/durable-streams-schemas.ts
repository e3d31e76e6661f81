/** Headers and query of the Durable Streams protocol, as schemas. */
import { Type } from "@sinclair/typebox";
import { ContentTypeField, FlagField, ProducerIdField, RequiredU64Field, StreamSeqField, TextField, U64Field } from "./field-schemas.ts";
import { DURABLE_STREAMS_HEADERS as NAMES } from "./header-names.ts";
import { compilePart } from "./schema-check.ts";

/** A position as we mint it, the suite's zero, a negative number for the start, or `now`. */
export const OFFSET_PATTERN = "^([0-9]{1,20}|0{16}_0{16}|-[0-9]{1,20}|now)$";
const MINTED_OFFSET_PATTERN = "^([0-9]{1,20}|0{16}_0{16})$";

export const durableStreamsCreateHeaders = compilePart(
  "header",
  Type.Object({
    "content-type": ContentTypeField,
    [NAMES.ttl]: U64Field("Sliding lifetime of the stream in seconds."),
    [NAMES.expiresAt]: TextField("End of the stream: an instant, RFC 3339."),
    [NAMES.closed]: FlagField("Creates the stream closed."),
    [NAMES.forkedFrom]: TextField("Path of the stream whose records the new one shares."),
    [NAMES.forkOffset]: Type.Optional(
      Type.String({
        pattern: MINTED_OFFSET_PATTERN,
        description: "an offset that this server returned",
        title: "Where the fork parts from its source.",
      }),
    ),
    [NAMES.forkSubOffset]: RequiredU64Field("Records (JSON) or bytes that are taken past the fork offset."),
  }),
);

export const durableStreamsAppendHeaders = compilePart(
  "header",
  Type.Object({
    "content-type": ContentTypeField,
    [NAMES.producerId]: ProducerIdField,
    [NAMES.producerEpoch]: RequiredU64Field("Epoch of the producer."),
    [NAMES.producerSeq]: RequiredU64Field("Sequence of this request within the epoch."),
    [NAMES.seq]: StreamSeqField,
    [NAMES.closed]: FlagField("Closes the stream behind the records."),
  }),
);

export const DURABLE_STREAMS_READ_PARAMETERS = ["offset", "live", "cursor"] as const;

export const durableStreamsReadQuery = compilePart(
  "parameter",
  Type.Object({
    offset: Type.Optional(
      Type.String({ pattern: OFFSET_PATTERN, description: "an offset that this server returned, -1 or now", title: "Where to read from." }),
    ),
    live: Type.Optional(
      Type.Union([Type.Literal("long-poll"), Type.Literal("sse")], {
        description: "long-poll or sse",
        title: "Waits for records, or follows the stream; needs an offset.",
      }),
    ),
    cursor: TextField("As in the answer before; lets caches tell live reads apart."),
  }),
);

/** Headers and query of the Pico protocol, as schemas: what is checked at the edge, and what the API description shows. */
import { Type } from "@sinclair/typebox";
import { ContentTypeField, FlagField, ProducerIdField, RequiredU64Field, TextField, U64Field } from "./field-schemas.ts";
import { PICO_HEADERS } from "./header-names.ts";
import { compilePart } from "./schema-check.ts";

export const picoCreateHeaders = compilePart(
  "header",
  Type.Object({
    "content-type": ContentTypeField,
    [PICO_HEADERS.ttl]: U64Field("Sliding lifetime of the stream in seconds."),
    [PICO_HEADERS.expiresAt]: TextField("End of the stream: an instant in UTC, or unix milliseconds."),
    [PICO_HEADERS.closed]: FlagField("Creates the stream closed."),
  }),
);

export const picoAppendHeaders = compilePart(
  "header",
  Type.Object({
    [PICO_HEADERS.producerId]: ProducerIdField,
    [PICO_HEADERS.producerEpoch]: RequiredU64Field("Epoch of the producer."),
    [PICO_HEADERS.producerSeq]: RequiredU64Field("Sequence of this request within the epoch."),
    [PICO_HEADERS.matchSeq]: U64Field("Refused unless this is the tail."),
    [PICO_HEADERS.trimSeq]: U64Field("Drops the records below; the body must be empty."),
    [PICO_HEADERS.closed]: FlagField("Closes the stream behind the records."),
    [PICO_HEADERS.key]: TextField("Key of the record."),
  }),
);

export const PICO_READ_PARAMETERS = ["seq", "count", "bytes", "format", "live", "cursor", "partition"] as const;

export const picoReadQuery = compilePart(
  "parameter",
  Type.Object({
    seq: Type.Optional(
      Type.String({
        pattern: "^([+-]?[0-9]+|[nN][oO][wW])$",
        description: "a position in decimal digits, or now",
        title: "Where to read from.",
      }),
    ),
    count: U64Field("At most this many records; 0: no limit."),
    bytes: U64Field("At most this many bytes, but at least one record; 0: no limit."),
    format: TextField("json, binary or raw."),
    live: Type.Optional(
      Type.Union([Type.Literal("long-poll"), Type.Literal("sse")], {
        description: "long-poll or sse",
        title: "Waits for records, or follows the stream.",
      }),
    ),
    cursor: TextField("As in the answer before; lets caches tell long polls apart."),
  }),
);

export const PICO_LIST_PARAMETERS = ["prefix", "limit", "cursor", "start_after"] as const;

export const picoListQuery = compilePart(
  "parameter",
  Type.Object({
    prefix: TextField("Names that begin with this."),
    limit: U64Field("At most this many; 0: the default."),
    cursor: TextField("`next` of the answer before."),
    start_after: TextField("Names behind this one."),
  }),
);

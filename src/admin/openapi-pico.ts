/** The Pico protocol as the API description has it, at the paths where this listener serves it. */
import { type TSchema, Type as t } from "@sinclair/typebox";
import { BATCH_RECORDS_MAX, LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX, RECORD_HEADERS_MAX } from "../lib/limits.ts";
import { PICO_BINARY_BATCH_TYPE, PICO_JSON_BATCH_TYPE } from "../protocol/header-names.ts";
import { picoAppendHeaders, picoCreateHeaders, picoListQuery, picoReadQuery } from "../protocol/pico-schemas.ts";
import type { AnswerAbout, BodyAbout, HeaderAbout, ParameterAbout } from "./operation-about.ts";
import { PICO_PATH } from "./pico-mount.ts";
import {
  Bytes,
  FlagValue,
  header,
  IF_NONE_MATCH,
  NAME_PARAMETER,
  Offset,
  parametersOf,
  REDIRECT,
  RETRY_AFTER,
  type StreamOperation,
} from "./stream-operation.ts";

const TAG = "Pico protocol";
const STREAM_PATH = `${PICO_PATH}/{name}`;

const PicoError = t.Object(
  {
    error: t.String({ description: "Code; docs/errors.md says what each means" }),
    message: t.String({ description: "What was refused, which value, and what to do" }),
    next_seq: t.Optional(t.Integer({ minimum: 0, description: "Tail of the stream, where it explains the refusal" })),
  },
  { $id: "PicoError" },
);

/** In JSON, bytes that are UTF-8 stand under their name, others as base64 under `<name>_b64`. */
const bytesAs = (name: string) => ({
  [name]: t.Optional(t.Union([t.String(), t.Null()])),
  [`${name}_b64`]: t.Optional(t.String({ contentEncoding: "base64" })),
});

const PicoRecord = t.Object(
  {
    seq: Offset,
    timestamp: t.Integer({ minimum: 0, description: "When it was appended, in ms since 1970" }),
    ...bytesAs("key"),
    headers: t.Optional(t.Array(t.Object({ name: t.String(), ...bytesAs("value") }), { maxItems: RECORD_HEADERS_MAX })),
    ...bytesAs("body"),
  },
  { $id: "PicoRecord" },
);

const OrNull = (schema: TSchema) => t.Optional(t.Union([schema, t.Null()]));
const Base64 = t.String({ pattern: "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$", contentEncoding: "base64" });
const newBytesAs = (name: string) => ({ [name]: OrNull(t.String()), [`${name}_b64`]: OrNull(Base64) });

const PicoBatch = t.Object(
  {
    records: t.Array(
      t.Object({
        ...newBytesAs("key"),
        headers: OrNull(t.Array(t.Object({ name: t.String(), ...newBytesAs("value") }), { maxItems: RECORD_HEADERS_MAX })),
        ...newBytesAs("body"),
      }),
      { minItems: 1, maxItems: BATCH_RECORDS_MAX },
    ),
  },
  { $id: "PicoBatch" },
);

const PicoList = t.Object(
  {
    items: t.Array(
      t.Object({
        name: t.String(),
        content_type: t.String(),
        partitions: t.Literal(1),
        closed: t.Boolean(),
        ttl: t.Optional(t.Integer({ minimum: 0, description: "Seconds" })),
        expires_at: t.Optional(t.String({ description: "RFC 3339" })),
        start_seq: t.Optional(t.Integer({ minimum: 0, description: "Only while the stream is in use on the answering node" })),
        next_seq: t.Optional(t.Integer({ minimum: 0, description: "Likewise" })),
      }),
      { maxItems: LIST_LIMIT_MAX },
    ),
    next: t.Optional(t.String({ description: "`cursor` of the next page; absent on the last" })),
  },
  { $id: "PicoList" },
);

const refusal = (description: string, code: string, message: string, headers: Readonly<Record<string, HeaderAbout>> = {}): AnswerAbout => ({
  description,
  schema: PicoError,
  example: { error: code, message },
  headers,
});

const NEXT_SEQ = header("Position behind the last record of this answer, or the tail", Offset);
const START_SEQ = header("First position that can still be read", Offset);
const CLOSED = header("The stream is closed: nothing follows", FlagValue);

const FORBIDDEN = refusal("A web page that is not allowed", "permission_denied", "origin is not allowed; name it with --admin-cors-origin");
const NOT_FOUND = refusal("No such stream", "not_found", "there is no stream /orders/live");
const GONE = refusal("Deleted, and kept for its forks", "gone", "the stream was deleted; its forks still need it");
const FAILED = refusal("It is open whether anything was written", "unknown_outcome", "the node stopped before the outcome was known");
const UNAVAILABLE = refusal("Not now; ask again", "unavailable", "this node is starting or stopping; try again", RETRY_AFTER);
const TOO_LARGE = refusal(
  "The body is above `--max-request-size`",
  "internal",
  "request body has 33554433 bytes or more, the limit is 33554432",
);
const badRequest = (message: string) => refusal("Malformed; the message names what", "bad_request", message);

/** What every operation on one stream may answer. */
const STREAM_ANSWERS: Readonly<Record<number, AnswerAbout>> = {
  307: REDIRECT,
  403: FORBIDDEN,
  404: NOT_FOUND,
  500: FAILED,
  503: UNAVAILABLE,
};

const bodyless = (description: string): AnswerAbout => ({ description });
/** Answers to `HEAD` have no body. */
function withoutBodies(answers: Readonly<Record<number, AnswerAbout>>): Record<number, AnswerAbout> {
  return Object.fromEntries(
    Object.entries(answers).map(([status, { description, headers }]) => [
      status,
      headers === undefined ? { description } : { description, headers },
    ]),
  );
}

const STATE_HEADERS: Readonly<Record<string, HeaderAbout>> = {
  "Pico-Start-Seq": { ...START_SEQ, isRequired: true },
  "Pico-Next-Seq": header("Tail: where the next record lands", Offset, true),
  "Pico-TTL": header("Sliding life in seconds, if it has one"),
  "Pico-Expires-At": header("Absolute end, RFC 3339, if it has one"),
  "Pico-Closed": CLOSED,
};

const RECORDS_BODY: BodyAbout = {
  description: "By its type: a batch of records, or one record, byte for byte. What the stream's own type is does not matter.",
  contents: {
    "application/octet-stream": { schema: Bytes },
    "text/plain": { schema: t.String(), example: "hello" },
    [PICO_JSON_BATCH_TYPE]: { schema: PicoBatch, example: { records: [{ key: "customer-7", body: "hello" }, { body_b64: "/wA=" }] } },
    [PICO_BINARY_BATCH_TYPE]: { schema: Bytes },
  },
};

const KEY_PARAMETER: ParameterAbout = {
  name: "Pico-Key",
  in: "header",
  description: "Key of the first record, where the body is one.",
  schema: t.String(),
};

const LAST_EVENT_ID: ParameterAbout = {
  name: "Last-Event-ID",
  in: "header",
  description: "Position to read from, as `EventSource` sends it: signed 64-bit decimal digits. Looked at only where `seq` is absent.",
  schema: t.String(),
};

export function picoOperations(): readonly StreamOperation[] {
  return [
    { path: PICO_PATH, method: "GET", about: listAbout() },
    { path: STREAM_PATH, method: "PUT", about: createAbout() },
    { path: STREAM_PATH, method: "POST", about: appendAbout() },
    { path: STREAM_PATH, method: "GET", about: readAbout() },
    { path: STREAM_PATH, method: "HEAD", about: headAbout() },
    { path: STREAM_PATH, method: "DELETE", about: deleteAbout() },
  ];
}

function listAbout(): StreamOperation["about"] {
  const item = { name: "/orders/live", content_type: "text/plain", partitions: 1, closed: false, start_seq: 0, next_seq: 3 };
  return {
    tag: TAG,
    summary: "List streams",
    description: `Names in byte order, a page at a time: ${LIST_LIMIT_DEFAULT} by default, at most ${LIST_LIMIT_MAX}. Any node answers. Also at \`${PICO_PATH}/\`.`,
    parameters: parametersOf(picoListQuery, { prefix: "/orders/", limit: "100" }),
    answers: {
      200: { description: "A page", schema: PicoList, example: { items: [item], next: "L29yZGVycy9saXZl" } },
      400: badRequest("parameter cursor must be the next of the answer before; it is x"),
      403: FORBIDDEN,
      500: FAILED,
      503: UNAVAILABLE,
    },
  };
}

function createAbout(): StreamOperation["about"] {
  return {
    tag: TAG,
    summary: "Create a stream",
    description: "Or find it as it was created: with the same type, life and closed flag. A body becomes its first records if it is new.",
    parameters: [NAME_PARAMETER, ...parametersOf(picoCreateHeaders, { "pico-ttl": "86400" }), KEY_PARAMETER],
    body: RECORDS_BODY,
    answers: {
      ...STREAM_ANSWERS,
      200: { description: "It exists with these settings; the body was ignored", headers: STATE_HEADERS },
      201: { description: "Created, durably", headers: { ...STATE_HEADERS, Location: header("Path of the stream", t.String(), true) } },
      400: badRequest("header Pico-TTL must be a whole number from 0 to 2^64-1 in plain digits; it is 1h"),
      404: refusal(
        "The name is reserved for a feature that is not there",
        "not_found",
        "/_groups is reserved for a feature that this server does not have",
      ),
      409: refusal(
        "It exists with other settings, or is deleted and kept for its forks",
        "conflict",
        "the stream exists with another content type",
        {
          "Pico-Next-Seq": NEXT_SEQ,
        },
      ),
      413: TOO_LARGE,
    },
  };
}

function appendAbout(): StreamOperation["about"] {
  return {
    tag: TAG,
    summary: "Append, close or trim",
    description:
      "All records of a request are appended one behind the other, or none; the answer comes when they are durable. " +
      "With `Pico-Closed: true` the stream is closed behind them. With `Pico-Trim-Seq` and no body its oldest records go away. " +
      "The three producer headers make a repeat safe: a request that is sent again is taken once.",
    parameters: [NAME_PARAMETER, ...parametersOf(picoAppendHeaders)],
    body: RECORDS_BODY,
    answers: {
      ...STREAM_ANSWERS,
      200: {
        description: "Durable; or a repeat, which wrote nothing; or trimmed",
        headers: {
          "Pico-Next-Seq": header("Tail behind the records; absent for a trim", Offset),
          "Pico-Start-Seq": header("Position of the first of them; for a trim the first position that can still be read", Offset),
          "Pico-Timestamp": header("Of all of them, in ms since 1970", Offset),
          "Pico-Closed": CLOSED,
          "Pico-Producer-Epoch": header("As sent"),
          "Pico-Producer-Seq": header("Last sequence taken"),
        },
      },
      400: badRequest("body holds no record; send one, or Pico-Closed: true to close the stream"),
      403: refusal(
        "The producer's epoch is over (`fenced`), or a web page that is not allowed (`permission_denied`)",
        "fenced",
        "epoch 1 is over: 2 is current",
        {
          "Pico-Producer-Epoch": header("The current epoch"),
        },
      ),
      409: refusal(
        "The stream is closed (`closed`), or the producer's sequence is ahead (`sequence_gap`)",
        "closed",
        "the stream is closed",
        {
          "Pico-Next-Seq": NEXT_SEQ,
          "Pico-Closed": CLOSED,
          "Pico-Expected-Seq": header("The sequence that is next"),
          "Pico-Received-Seq": header("The one that was sent"),
        },
      ),
      410: GONE,
      412: refusal("`Pico-Match-Seq` is not the tail", "match_failed", "the tail is 7, not 5", { "Pico-Next-Seq": NEXT_SEQ }),
      413: TOO_LARGE,
      429: refusal("The stream remembers as many producers as it may", "capacity_exceeded", "the stream remembers 10000 producers"),
    },
  };
}

function readAbout(): StreamOperation["about"] {
  const record = { seq: 0, timestamp: 1_760_000_000_123, key: "customer-7", body: "hello" };
  const pageHeaders = {
    "Pico-Next-Seq": header("`seq` of the next page", Offset),
    "Pico-Up-To-Date": header("The page reaches the tail", FlagValue),
    "Pico-Closed": CLOSED,
    "Pico-Cursor": header("Long polls: `cursor` of the next one"),
    ETag: header("Of the page; not on live reads"),
  };
  return {
    tag: TAG,
    summary: "Read, wait for or follow records",
    description:
      "A page of records from `seq` on; repeat with `seq` = `Pico-Next-Seq` until `Pico-Up-To-Date`. With `live=long-poll` a read at the tail waits for records; " +
      "with `live=sse` the answer goes on as server-sent events, whose `data` events hold records as in `json`, and whose `control` events hold the next position.",
    parameters: [
      NAME_PARAMETER,
      ...parametersOf(picoReadQuery, { seq: "0", count: "100", bytes: "65536", format: "json" }),
      IF_NONE_MATCH,
      LAST_EVENT_ID,
    ],
    answers: {
      ...STREAM_ANSWERS,
      200: {
        description: "Records, or an empty page at the tail. `format=raw` comes in the stream's own type",
        headers: pageHeaders,
        contents: {
          "application/json": { schema: t.Array(PicoRecord), example: [record] },
          [PICO_BINARY_BATCH_TYPE]: { schema: Bytes },
          "text/event-stream": { example: 'event: control\nid: 0\ndata: {"next_seq":0,"up_to_date":true}\n\n' },
          // Of any type, in the bytes that were stored: no schema fits all of them.
          "*/*": {},
        },
      },
      204: { description: "Long polls: no record came in time, or none will", headers: pageHeaders },
      304: { description: "The client has this page", headers: pageHeaders },
      // No schema, as a body is not there always.
      404: { description: 'No such stream: `{"error", "message"}` as everywhere, but no body with `live=sse`' },
      400: refusal("Malformed, or `seq` is above the tail", "bad_request", "offset 9 is above the tail 7: read from 0 to 7", {
        "Pico-Next-Seq": NEXT_SEQ,
      }),
      409: refusal(
        "The stream moved to another node while the read waited",
        "conflict",
        "the stream moved to another node while the read waited; ask again",
      ),
      410: refusal(
        "`seq` is trimmed away (`offset_gone`), or the stream is deleted and kept for its forks (`gone`)",
        "offset_gone",
        "offset 0 is trimmed: offsets 2 to 7 can be read",
        {
          "Pico-Start-Seq": START_SEQ,
        },
      ),
    },
  };
}

function headAbout(): StreamOperation["about"] {
  return {
    tag: TAG,
    summary: "The state of a stream",
    description: "Where it begins and ends, its type and its life. Renews no sliding life.",
    parameters: [NAME_PARAMETER],
    answers: {
      ...withoutBodies(STREAM_ANSWERS),
      200: { description: "The stream", headers: STATE_HEADERS },
      400: bodyless("The path cannot be a name"),
      410: bodyless("Deleted, and kept for its forks"),
    },
  };
}

function deleteAbout(): StreamOperation["about"] {
  return {
    tag: TAG,
    summary: "Delete a stream",
    description: "For good, durably. Its name is free at once, unless forks live: they keep its records.",
    parameters: [NAME_PARAMETER],
    answers: {
      ...STREAM_ANSWERS,
      204: bodyless("Deleted"),
      400: badRequest('stream name "/a/%zz" has a malformed percent escape, or one that is not UTF-8'),
      404: bodyless("No such stream"),
      410: GONE,
    },
  };
}

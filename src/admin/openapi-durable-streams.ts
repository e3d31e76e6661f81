/** The Durable Streams protocol as the API description has it: on a listener of its own. */
import { Type as t } from "@sinclair/typebox";
import { durableStreamsAppendHeaders, durableStreamsCreateHeaders, durableStreamsReadQuery } from "../protocol/durable-streams-schemas.ts";
import type { AnswerAbout, BodyAbout, HeaderAbout } from "./operation-about.ts";
import {
  Bytes,
  FlagValue,
  header,
  IF_NONE_MATCH,
  NAME_PARAMETER,
  parametersOf,
  REDIRECT,
  RETRY_AFTER,
  type StreamOperation,
} from "./stream-operation.ts";

const TAG = "Durable Streams protocol";
export const DURABLE_STREAMS_PATH = "/{name}";
const TEXT = "text/plain; charset=utf-8";

const Token = t.String({ pattern: "^[0-9]{20}$", description: "Opaque; sorts as text" });
const UnavailableAnswer = t.Object({ error: t.String(), message: t.String() }, { $id: "DurableStreamsUnavailable" });

const refusal = (description: string, message: string, headers: Readonly<Record<string, HeaderAbout>> = {}): AnswerAbout => ({
  description,
  contentType: TEXT,
  schema: t.String(),
  example: message,
  headers,
});

const NEXT_OFFSET = header("Where the next read or append goes on", Token);
const CLOSED = header("The stream is closed: nothing follows", FlagValue);
const NOT_FOUND = refusal("No such stream", "there is no stream /orders/live");
const GONE = refusal("Deleted, and kept for its forks", "the stream was deleted; its forks still need it");
const TOO_LARGE = refusal("The body is above `--max-request-size`", "request body has 33554433 bytes or more, the limit is 33554432");
const badRequest = (message: string) => refusal("Malformed; the text names what", message);

const STREAM_ANSWERS: Readonly<Record<number, AnswerAbout>> = {
  307: REDIRECT,
  403: refusal("A web page that is not allowed", "origin is not allowed; name it with --cors-origin"),
  404: NOT_FOUND,
  500: refusal("It is open whether anything was written", "the node stopped before the outcome was known"),
  503: {
    description: "Not now; ask again",
    schema: UnavailableAnswer,
    example: { error: "unavailable", message: "stream /orders/live is in recovery" },
    headers: RETRY_AFTER,
  },
};

const STATE_HEADERS: Readonly<Record<string, HeaderAbout>> = {
  "Stream-Next-Offset": { ...NEXT_OFFSET, isRequired: true },
  "Stream-TTL": header("Sliding life in seconds, if it has one"),
  "Stream-Expires-At": header("Absolute end, RFC 3339, if it has one"),
  "Stream-Closed": CLOSED,
};

const DATA_BODY: BodyAbout = {
  description: "Data of the stream's type; of a JSON type one value, or an array whose members are appended.",
  contents: {
    "application/octet-stream": { schema: Bytes },
    "application/json": { schema: t.Unknown(), example: [{ order: 1 }] },
    "text/plain": { schema: t.String(), example: "hello" },
  },
};

export function durableStreamsOperations(): readonly StreamOperation[] {
  return [
    { path: DURABLE_STREAMS_PATH, method: "PUT", about: createAbout() },
    { path: DURABLE_STREAMS_PATH, method: "POST", about: appendAbout() },
    { path: DURABLE_STREAMS_PATH, method: "GET", about: readAbout() },
    { path: DURABLE_STREAMS_PATH, method: "HEAD", about: headAbout() },
    { path: DURABLE_STREAMS_PATH, method: "DELETE", about: deleteAbout() },
  ];
}

function createAbout(): StreamOperation["about"] {
  return {
    tag: TAG,
    summary: "Create a stream, or a fork of one",
    description:
      "Or find it as it was created. A body becomes its first data. With `Stream-Forked-From` it shares the source's data up to an offset.",
    parameters: [NAME_PARAMETER, ...parametersOf(durableStreamsCreateHeaders, { "stream-ttl": "86400" })],
    body: DATA_BODY,
    answers: {
      ...STREAM_ANSWERS,
      200: { description: "It exists with these settings; the body was ignored", headers: STATE_HEADERS },
      201: {
        description: "Created, durably",
        headers: { ...STATE_HEADERS, Location: header("URL of the stream", t.String({ format: "uri" }), true) },
      },
      400: badRequest("header Stream-TTL must be a whole number from 0 to 2^64-1 in plain digits; it is 1h"),
      404: refusal("The source of the fork is not there", "there is no stream /orders/live"),
      409: refusal(
        "It exists with other settings, or it or the source is deleted and kept for forks",
        "the stream exists with another content type",
      ),
      410: GONE,
      413: TOO_LARGE,
    },
  };
}

function appendAbout(): StreamOperation["about"] {
  return {
    tag: TAG,
    summary: "Append or close",
    description: "The answer comes when the data is durable. With `Stream-Closed: true` the stream is closed behind it, or without data.",
    parameters: [NAME_PARAMETER, ...parametersOf(durableStreamsAppendHeaders)],
    body: DATA_BODY,
    answers: {
      ...STREAM_ANSWERS,
      200: {
        description: "Data of a producer, taken anew",
        headers: { "Stream-Next-Offset": NEXT_OFFSET, "Producer-Epoch": header("As sent"), "Producer-Seq": header("Last sequence taken") },
      },
      204: {
        description: "Durable; or a producer's repeat, which wrote nothing",
        headers: {
          "Stream-Next-Offset": NEXT_OFFSET,
          "Stream-Closed": CLOSED,
          "Producer-Epoch": header("As sent"),
          "Producer-Seq": header("Last sequence taken"),
        },
      },
      400: badRequest("body is empty; send data, or Stream-Closed: true to close the stream"),
      403: refusal("The producer's epoch is over, or a web page that is not allowed", "epoch 1 is over: 2 is current", {
        "Producer-Epoch": header("The current epoch"),
      }),
      409: refusal("Closed; another type; a sequence that is ahead; `Stream-Seq` did not rise", "the stream is closed", {
        "Stream-Next-Offset": NEXT_OFFSET,
        "Stream-Closed": CLOSED,
        "Producer-Expected-Seq": header("The sequence that is next"),
        "Producer-Received-Seq": header("The one that was sent"),
      }),
      410: GONE,
      413: TOO_LARGE,
      429: refusal("The stream remembers as many producers as it may", "the stream remembers 10000 producers"),
    },
  };
}

function readAbout(): StreamOperation["about"] {
  const pageHeaders = {
    "Stream-Next-Offset": NEXT_OFFSET,
    "Stream-Up-To-Date": header("The page reaches the tail", FlagValue),
    "Stream-Closed": CLOSED,
    "Stream-Cursor": header("Live reads: `cursor` of the next one"),
    "Stream-SSE-Data-Encoding": header("`base64` where events could not hold the type's bytes", t.Literal("base64")),
    ETag: header("Of the page"),
  };
  return {
    tag: TAG,
    summary: "Read, wait for or follow data",
    description:
      "Data from `offset` on, at most a page; repeat with `Stream-Next-Offset` until `Stream-Up-To-Date`. " +
      "With `live=long-poll` a read at the tail waits for data; with `live=sse` the answer goes on as server-sent events.",
    parameters: [NAME_PARAMETER, ...parametersOf(durableStreamsReadQuery, { offset: "-1" }), IF_NONE_MATCH],
    answers: {
      ...STREAM_ANSWERS,
      200: {
        description: "Data in the stream's own type",
        headers: pageHeaders,
        // Of any type: no schema fits all of them.
        contents: { "*/*": {}, "text/event-stream": {} },
      },
      204: { description: "Long polls: no data came in time, or none will", headers: pageHeaders },
      304: { description: "The client has this page", headers: pageHeaders },
      400: badRequest("parameter offset is missing: a live read needs one"),
      409: refusal(
        "The stream moved to another node while the read waited",
        "the stream moved to another node while the read waited; ask again",
      ),
      410: refusal(
        "The offset is trimmed away, or the stream is deleted and kept for its forks",
        "offset 0 is trimmed: offsets 2 to 7 can be read",
      ),
    },
  };
}

function headAbout(): StreamOperation["about"] {
  return {
    tag: TAG,
    summary: "The state of a stream",
    description: "Its tail, type and life. Renews no sliding life.",
    parameters: [NAME_PARAMETER],
    answers: {
      200: { description: "The stream", headers: STATE_HEADERS },
      307: REDIRECT,
      400: { description: "The path cannot be a name" },
      403: { description: "A web page that is not allowed" },
      404: { description: "No such stream" },
      410: { description: "Deleted, and kept for its forks" },
      500: { description: "The node failed" },
      503: { description: "Not now; ask again", headers: RETRY_AFTER },
    },
  };
}

function deleteAbout(): StreamOperation["about"] {
  return {
    tag: TAG,
    summary: "Delete a stream",
    description: "For good, durably. Its name is free at once, unless forks live: they keep its data.",
    parameters: [NAME_PARAMETER],
    answers: {
      ...STREAM_ANSWERS,
      204: { description: "Deleted" },
      400: badRequest('stream name "/a/%zz" has a malformed percent escape, or one that is not UTF-8'),
      410: GONE,
    },
  };
}

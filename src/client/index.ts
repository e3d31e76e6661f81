/**
 * What `picomq/client` gives: typed clients of the Pico protocol and of Durable Streams, for Bun, Node and browsers.
 * `docs/client.md` walks through both.
 */
// The package's door: whoever imports it sees these names and no file behind them.
// biome-ignore-start lint/performance/noBarrelFile: a package has one entry, and its files are not its interface.
export type { CallOptions, ClientOptions } from "./client-options.ts";
export type { ClientClock, ClientRandom, ClientSeams, ClientTimer, Fetch, FetchInit } from "./client-seams.ts";
export { DurablePage } from "./durable-page.ts";
export {
  type DurableAck,
  type DurableAppendOptions,
  type DurableCreateOptions,
  type DurableForkOptions,
  type DurableProducer,
  DurableStream,
  type DurableStreamOptions,
} from "./durable-stream.ts";
export { DurableStreamsClient } from "./durable-streams-client.ts";
export { PicoClient, type PicoListOptions } from "./pico-client.ts";
export type { PicoListItem, PicoListPage } from "./pico-list.ts";
export { type BytesInput, type PicoHeader, type PicoHeaderInput, PicoRecord, type PicoRecordInput } from "./pico-records.ts";
export {
  type PicoAck,
  type PicoAppendOptions,
  type PicoAppendResult,
  type PicoCreateResult,
  type PicoFollowOptions,
  type PicoPage,
  type PicoPageOptions,
  type PicoProducer,
  type PicoReadOptions,
  PicoStream,
  type PicoStreamState,
} from "./pico-stream.ts";
export { Producer, type ProducerLink, type ProducerOptions, type TakenBatch } from "./producer.ts";
export type { RetryOptions, RetryPause } from "./retry.ts";
export { isStreamError, StreamError, type StreamErrorCode, type StreamErrorFacts, type StreamErrorOptions } from "./stream-error.ts";
export type {
  AppendOptions,
  AppendResult,
  CreateOptions,
  CreateResult,
  FollowOptions,
  From,
  Page,
  PageReadOptions,
  ProducerStamp,
  ReadOptions,
  StreamHandle,
  StreamState,
} from "./stream-handle.ts";
// biome-ignore-end lint/performance/noBarrelFile: see above

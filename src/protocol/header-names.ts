/**
 * Names that both ends of a wire must spell alike: headers (lower case, as they are looked up),
 * media types and reserved paths of the two stream protocols. Holds nothing of the server, so that
 * clients can import it.
 */

export const PICO_HEADERS = {
  startSeq: "pico-start-seq",
  nextSeq: "pico-next-seq",
  timestamp: "pico-timestamp",
  cursor: "pico-cursor",
  upToDate: "pico-up-to-date",
  closed: "pico-closed",
  ttl: "pico-ttl",
  expiresAt: "pico-expires-at",
  key: "pico-key",
  matchSeq: "pico-match-seq",
  trimSeq: "pico-trim-seq",
  producerId: "pico-producer-id",
  producerEpoch: "pico-producer-epoch",
  producerSeq: "pico-producer-seq",
  expectedSeq: "pico-expected-seq",
  receivedSeq: "pico-received-seq",
} as const;

export const DURABLE_STREAMS_HEADERS = {
  nextOffset: "stream-next-offset",
  cursor: "stream-cursor",
  upToDate: "stream-up-to-date",
  closed: "stream-closed",
  ttl: "stream-ttl",
  expiresAt: "stream-expires-at",
  seq: "stream-seq",
  forkedFrom: "stream-forked-from",
  forkOffset: "stream-fork-offset",
  forkSubOffset: "stream-fork-sub-offset",
  sseDataEncoding: "stream-sse-data-encoding",
  producerId: "producer-id",
  producerEpoch: "producer-epoch",
  producerSeq: "producer-seq",
  expectedSeq: "producer-expected-seq",
  receivedSeq: "producer-received-seq",
} as const;

/** Bodies that hold several records (Pico 4.1). */
export const PICO_JSON_BATCH_TYPE = "application/vnd.picomq.batch+json";
export const PICO_BINARY_BATCH_TYPE = "application/vnd.picomq.batch";

export const DEFAULT_CONTENT_TYPE = "application/octet-stream";

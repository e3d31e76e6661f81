/** One stream as the verbs of the command line use it: what they print, whichever protocol it comes over. */
import { isStreamError } from "../client/stream-error.ts";
import { PicoError } from "../lib/errors.ts";
import type { ClientSettings } from "./client-flags.ts";
import { DurableStreamClient } from "./durable-stream-client.ts";
import type { GivenText } from "./flag-values.ts";
import type { OutageNotice } from "./outage-notice.ts";
import { PicoStreamClient } from "./pico-stream-client.ts";

export interface StreamClient {
  /** False: it existed, with equal settings. */
  create(contentType: string, ttlSeconds: number | null): Promise<boolean>;
  head(): Promise<StreamFacts>;
  /** Position behind the last record. */
  close(): Promise<string>;
  /** False: there was none. */
  delete(): Promise<boolean>;
  /** First position that is left. Throws where the protocol has no trim. */
  trim(seq: number): Promise<number>;
  /** Lines of the records up to the tail, a page at a time. Throws `settings` for a position that cannot be one. */
  read(from: GivenText | null): AsyncIterable<Uint8Array>;
  /** Lines of the records that come: until the stream ends, or of the first that come while the server waits. */
  tail(isFollowing: boolean): AsyncIterable<Uint8Array>;
  /** Looks for the stream; throws `not_found` where there is none. */
  openLines(options: LineOptions): Promise<LineProducer>;
}

export interface StreamFacts {
  readonly start: string;
  readonly next: string;
  readonly isClosed: boolean;
  readonly contentType: string;
}

export interface LineOptions {
  /** Null: the stream's own. */
  readonly contentType: string | null;
  readonly producerId: string;
  readonly producerEpoch: number;
  /** Records of one request, at most. */
  readonly batchRecordsMax: number;
  readonly signal: AbortSignal;
  readonly onTaken: (taken: TakenLines) => void;
}

/** A request that the server took. */
export interface TakenLines {
  readonly count: number;
  /** Position of its first record; null where the protocol, or the answer to a repeat, does not tell. */
  readonly start: number | null;
  /** Position behind its last record; null where the answer to a repeat does not tell. */
  readonly next: string | null;
}

export interface LineProducer {
  /** Takes a copy of a line; resolves when it has room. */
  write(line: Uint8Array): Promise<void>;
  /** Resolves when everything written is durable. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** `notice` bridges outages of reads and appends; null: there are none to bridge. Throws `settings` for a name that cannot be one. */
export function openStream(settings: ClientSettings, name: string, notice: OutageNotice | null): StreamClient {
  try {
    return settings.protocol === "pico" ? new PicoStreamClient(settings, name, notice) : new DurableStreamClient(settings, name, notice);
  } catch (error) {
    throw isStreamError(error, "bad_request") ? new PicoError("settings", error.message, { flag: "STREAM" }, error) : error;
  }
}

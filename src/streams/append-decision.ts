/**
 * Whether an append is written, was written before, or is refused: a pure function of the stream's
 * newest assigned state and the request (Pico 4.3, 5, 6; Durable Streams 5.2, 5.2.1). The order of the
 * checks is part of the contract: producer, closed, match, content type, `Stream-Seq`. So a duplicate
 * is acknowledged even on a closed stream or with a failing match.
 */
import type { ProducerStamp, ProducerState } from "../engine/tail-state.ts";
import { PicoError } from "../lib/errors.ts";
import type { AppendRequest } from "./stream-service.ts";

/** The part of a stream's assigned state that decides. */
export interface AppendState {
  readonly nextOffset: number;
  readonly isClosed: boolean;
  readonly closedBy: ProducerStamp | null;
  readonly streamSeq: string | null;
  readonly mimeType: string;
  producer(producerId: string): ProducerState | undefined;
}

export type AppendDecision =
  | { readonly kind: "write" }
  /** The producer's append was taken before; `lastSeq` is its last accepted one. */
  | { readonly kind: "duplicate"; readonly lastSeq: bigint }
  /** A repeated close: nothing is left to do. */
  | { readonly kind: "closed_before" }
  | { readonly kind: "refuse"; readonly error: PicoError };

const WRITE: AppendDecision = { kind: "write" };

export function decideAppend(state: AppendState, request: AppendRequest): AppendDecision {
  if (request.producer !== null) {
    const decision = decideProducer(state.producer(request.producer.producerId), request.producer);
    if (decision.kind !== "write") return decision;
  }
  if (state.isClosed) return decideOnClosed(state, request);
  if (request.matchTail !== null && request.matchTail !== BigInt(state.nextOffset)) {
    return refuse(
      new PicoError("match_failed", `the tail is ${state.nextOffset}, not ${request.matchTail}: read on and decide again`, {
        tail: state.nextOffset,
      }),
    );
  }
  if (request.mimeType !== null && request.records.length > 0 && request.mimeType !== state.mimeType) {
    return refuse(
      new PicoError("content_type_mismatch", `the stream holds ${state.mimeType}, not ${request.mimeType}`, {
        expected: state.mimeType,
        received: request.mimeType,
      }),
    );
  }
  if (request.streamSeq !== null && state.streamSeq !== null && !isAbove(request.streamSeq, state.streamSeq)) {
    return refuse(
      new PicoError(
        "stream_seq_conflict",
        `Stream-Seq must rise: ${JSON.stringify(request.streamSeq)} is not above ${JSON.stringify(state.streamSeq)}`,
        {
          tail: state.nextOffset,
        },
      ),
    );
  }
  return WRITE;
}

/** The table of Pico 5: one sequence a request, starting at 0 in each producer epoch. */
function decideProducer(known: ProducerState | undefined, stamp: ProducerStamp): AppendDecision {
  const { producerEpoch, seq } = stamp;
  if (known === undefined || producerEpoch > known.producerEpoch) {
    if (seq === 0n) return WRITE;
    const situation = known === undefined ? "an unknown producer" : `producer epoch ${producerEpoch}, which is new`;
    return refuse(new PicoError("bad_request", `${situation} starts at sequence 0, not ${seq}`, { what: "producer sequence" }));
  }
  if (producerEpoch < known.producerEpoch) {
    return refuse(
      new PicoError("fenced", `producer epoch ${producerEpoch} is over: ${known.producerEpoch} is current`, {
        producerEpoch: known.producerEpoch.toString(),
      }),
    );
  }
  if (seq <= known.lastSeq) return { kind: "duplicate", lastSeq: known.lastSeq };
  if (seq === known.lastSeq + 1n) return WRITE;
  return refuse(
    new PicoError("sequence_gap", `producer sequence ${seq} is ahead: ${known.lastSeq + 1n} is next`, {
      expected: (known.lastSeq + 1n).toString(),
      received: seq.toString(),
    }),
  );
}

/** The table of Pico 6 for a closed stream; the request is no duplicate of a producer's append. */
function decideOnClosed(state: AppendState, request: AppendRequest): AppendDecision {
  const isCloseOnly = request.close && request.records.length === 0;
  if (isCloseOnly && (request.producer === null || state.closedBy === null)) return { kind: "closed_before" };
  return refuse(
    new PicoError("closed", `the stream is closed at ${state.nextOffset}: it takes no more records`, { tail: state.nextOffset }),
  );
}

/** Byte-wise order of the UTF-8 forms (Durable Streams 5.2), which is code point order. */
function isAbove(left: string, right: string): boolean {
  return Buffer.compare(Buffer.from(left), Buffer.from(right)) > 0;
}

function refuse(error: PicoError): AppendDecision {
  return { kind: "refuse", error };
}

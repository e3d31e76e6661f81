import { describe, expect, test } from "bun:test";
import type { ProducerStamp, ProducerState } from "../../src/engine/tail-state.ts";
import { type AppendState, decideAppend } from "../../src/streams/append-decision.ts";
import type { AppendRequest } from "../../src/streams/stream-service.ts";

const RECORD = { key: null, headers: [], body: new Uint8Array([1]) };

function state(changes: Partial<AppendState> & { known?: ProducerState } = {}): AppendState {
  const { known, ...rest } = changes;
  return { nextOffset: 5, isClosed: false, closedBy: null, streamSeq: null, mimeType: "text/plain", producer: () => known, ...rest };
}

function request(changes: Partial<AppendRequest> = {}): AppendRequest {
  return { name: "/s", records: [RECORD], close: false, producer: null, matchTail: null, streamSeq: null, mimeType: null, ...changes };
}

function stamp(producerEpoch: bigint, seq: bigint): ProducerStamp {
  return { producerId: "p", producerEpoch, seq };
}

function known(producerEpoch: bigint, lastSeq: bigint): ProducerState {
  return { producerEpoch, lastSeq, lastUsedMs: 0 };
}

/** `write`, `duplicate`, `closed_before`, or the code of the refusal. */
function decide(of: AppendState, asked: AppendRequest): string {
  const decision = decideAppend(of, asked);
  return decision.kind === "refuse" ? decision.error.code : decision.kind;
}

describe("producers (Pico 5)", () => {
  test.each([
    ["an unknown producer starts at 0 in any epoch", undefined, stamp(7n, 0n), "write"],
    ["an unknown producer that starts elsewhere is a bad request", undefined, stamp(0n, 1n), "bad_request"],
    ["an older epoch is fenced", known(3n, 9n), stamp(2n, 10n), "fenced"],
    ["a newer epoch starts at 0", known(3n, 9n), stamp(4n, 0n), "write"],
    ["a newer epoch that starts elsewhere is a bad request", known(3n, 9n), stamp(4n, 10n), "bad_request"],
    ["the last sequence again is a duplicate", known(3n, 9n), stamp(3n, 9n), "duplicate"],
    ["an earlier sequence is a duplicate", known(3n, 9n), stamp(3n, 0n), "duplicate"],
    ["the next sequence is written", known(3n, 9n), stamp(3n, 10n), "write"],
    ["a sequence ahead is a gap", known(3n, 9n), stamp(3n, 11n), "sequence_gap"],
    ["sequences are exact beyond 2^53", known(3n, 2n ** 63n), stamp(3n, 2n ** 63n + 1n), "write"],
  ] as const)("%s", (_, producer, asked, expected) => {
    expect(decide(producer === undefined ? state() : state({ known: producer }), request({ producer: asked }))).toBe(expected);
  });

  test("a gap names what is expected and what came", () => {
    const decision = decideAppend(state({ known: known(3n, 0n) }), request({ producer: stamp(3n, 4n) }));
    expect(decision).toMatchObject({ kind: "refuse", error: { facts: { expected: "1", received: "4" } } });
  });

  test("a duplicate is one on a closed stream and with a failing match too", () => {
    const closed = state({ known: known(3n, 9n), isClosed: true, closedBy: stamp(9n, 9n) });
    expect(decide(closed, request({ producer: stamp(3n, 9n), matchTail: 99n }))).toBe("duplicate");
  });
});

describe("closed streams (Pico 6)", () => {
  const byProducer = state({ isClosed: true, closedBy: stamp(1n, 4n), known: known(1n, 4n) });
  const byNone = state({ isClosed: true, known: known(1n, 4n) });
  const closeOnly = { records: [], close: true };

  test.each([
    ["close-only without a producer", byProducer, request(closeOnly), "closed_before"],
    ["close-only with an accepted sequence", byProducer, request({ ...closeOnly, producer: stamp(1n, 4n) }), "duplicate"],
    ["close-only with the next sequence, closed by a producer", byProducer, request({ ...closeOnly, producer: stamp(1n, 5n) }), "closed"],
    ["close-only with the next sequence, closed by none", byNone, request({ ...closeOnly, producer: stamp(1n, 5n) }), "closed_before"],
    ["records", byNone, request(), "closed"],
    ["records and close", byNone, request({ close: true }), "closed"],
    ["records that fail the match too", byNone, request({ matchTail: 1n }), "closed"],
  ] as const)("%s", (_, of, asked, expected) => {
    expect(decide(of, asked)).toBe(expected);
  });
});

describe("conditions", () => {
  test.each([
    ["a match with the tail", request({ matchTail: 5n }), "write"],
    ["a match below the tail", request({ matchTail: 4n }), "match_failed"],
    ["a match beyond 2^53 does not wrap", request({ matchTail: 2n ** 64n - 1n }), "match_failed"],
    ["the stream's MIME type", request({ mimeType: "text/plain" }), "write"],
    ["another MIME type", request({ mimeType: "application/json" }), "content_type_mismatch"],
    ["another MIME type on a close without records", request({ mimeType: "application/json", records: [], close: true }), "write"],
    ["a Stream-Seq on a stream without one", request({ streamSeq: "" }), "write"],
  ] as const)("%s", (_, asked, expected) => {
    expect(decide(state(), asked)).toBe(expected);
  });

  test.each([
    ["a", "b", "write"],
    ["b", "b", "stream_seq_conflict"],
    ["b", "a", "stream_seq_conflict"],
    ["2", "10", "stream_seq_conflict"],
    // UTF-16 would order these the other way round.
    ["\u{ff5e}", "\u{1f600}", "write"],
  ] as const)("Stream-Seq after %p: %p", (last, next, expected) => {
    expect(decide(state({ streamSeq: last }), request({ streamSeq: next }))).toBe(expected);
  });
});

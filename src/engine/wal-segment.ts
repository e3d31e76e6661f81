/**
 * A segment in memory, from its first entry on, and where an entry lies in one. Its stored format: `wal-segment-format.ts`.
 */
import { assert } from "../lib/assert.ts";
import type { ByteWriter } from "../lib/bytes.ts";

/** `open` takes entries, `sealed` waits for the store, `durable` is acknowledged, `failed` never will be. */
export type WalSegmentState = "open" | "sealed" | "durable" | "failed";

/** A segment in memory. Whoever refers to its bytes keeps the segment: its buffer moves while it is open. */
export class WalSegment {
  state: WalSegmentState;
  #bytes: Uint8Array;
  #out: ByteWriter | null;

  private constructor(
    readonly number: number,
    out: ByteWriter | null,
    bytes: Uint8Array,
    state: WalSegmentState,
  ) {
    this.#out = out;
    this.#bytes = bytes;
    this.state = state;
  }

  static open(number: number, out: ByteWriter): WalSegment {
    return new WalSegment(number, out, out.buffer, "open");
  }

  /** A segment that was read back, header included. */
  static stored(number: number, bytes: Uint8Array): WalSegment {
    return new WalSegment(number, null, bytes, "durable");
  }

  /** Header and body. While the segment is open what lies behind `length` has no meaning. */
  get bytes(): Uint8Array {
    return this.#out === null ? this.#bytes : this.#out.buffer;
  }

  /** Bytes so far, the header's included. */
  get length(): number {
    return this.#out === null ? this.#bytes.length : this.#out.length;
  }

  /** Fixes the bytes. `bytes` holds what was written so far, exactly. */
  seal(bytes: Uint8Array): void {
    assert(this.state === "open", "only an open segment is sealed");
    this.#out = null;
    this.#bytes = bytes;
    this.state = "sealed";
  }
}

/** Where an entry lies: bytes `[start, end)` of `segment.bytes`. */
export interface WalPosition {
  readonly segment: WalSegment;
  readonly start: number;
  readonly end: number;
}

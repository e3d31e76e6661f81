/**
 * Writes blocks of a data object, one behind the other, and remembers their index entries. The layout
 * is in `data-object-format.ts`. Parts come in ascending order of stream ids.
 */
import { assert } from "../lib/assert.ts";
import type { ByteWriter } from "../lib/bytes.ts";
import { checksum64 } from "../lib/checksum.ts";
import { DIRECTORY_ENTRY_BYTES, type IndexEntry, PART_COUNT_BYTES } from "./data-object-format.ts";

export class BlockSectionWriter {
  /** Of the blocks that are ended; positions count from the begin of `out`. */
  readonly entries: IndexEntry[] = [];
  #blockStart: number;
  #firstOffset = 0;
  /** The open block's directory. */
  #streamIds: number[] = [];
  #starts: number[] = [];

  constructor(readonly out: ByteWriter) {
    this.#blockStart = out.length;
  }

  /** Bytes of the open block as it stands, with its directory; 0 where none is open. */
  get blockBytes(): number {
    if (this.#starts.length === 0) return 0;
    return this.out.length - this.#blockStart + this.#starts.length * DIRECTORY_ENTRY_BYTES + PART_COUNT_BYTES;
  }

  /** What follows in `out` belongs to the stream. `offset`: of the first record that follows. */
  startPart(streamId: number, offset: number): void {
    const last = this.#streamIds.at(-1);
    if (last === streamId) return;
    assert(last === undefined || last < streamId, "the parts of a block are in the order of stream ids");
    if (last === undefined) {
      this.#blockStart = this.out.length;
      this.#firstOffset = offset;
    }
    this.#streamIds.push(streamId);
    this.#starts.push(this.out.length - this.#blockStart);
  }

  /** Ends the open block, if there is one. */
  endBlock(): void {
    const [streamId] = this.#streamIds;
    if (streamId === undefined) return;
    for (const [i, start] of this.#starts.entries()) {
      this.out.u64(this.#streamIds[i] ?? 0);
      this.out.u32(start);
    }
    this.out.u32(this.#starts.length);
    const position = this.#blockStart;
    const length = this.out.length - position;
    const checksum = checksum64(this.out.buffer.subarray(position, this.out.length));
    this.entries.push({ streamId, offset: this.#firstOffset, position, length, checksum });
    this.#streamIds = [];
    this.#starts = [];
  }
}

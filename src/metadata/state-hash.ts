/**
 * The state hash: the sum, modulo 2^64, of the checksums of all snapshot rows. A sum has no order, so it
 * follows single changes, and nodes that applied the same log have the same one whatever order their
 * maps are in. The snapshot's head stores it with the number of rows, so that a missing row is never
 * taken for a deleted entry (FAULTS L2).
 *
 * Invariant: sum and count stand for the rows as of the last `fold`; `#before` holds, for each row
 * touched since, what the sum still counts for it. No checksum is kept a row: the old value is encoded
 * once more when it is taken out, which costs time for changed rows only, and no memory for the others.
 */
import { ByteWriter } from "../lib/bytes.ts";
import { checksum64 } from "../lib/checksum.ts";
import { encodeRowValue, type StateRow } from "./state-format.ts";

export interface HashedRows {
  readonly rowCount: number;
  readonly rowSum: bigint;
}

/** Checksum of one row, over key and value. `writer` is scratch space. */
export function rowChecksum(key: string, value: Uint8Array, writer = new ByteWriter()): bigint {
  writer.length = 0;
  writer.text(key);
  writer.bytes(value);
  return checksum64(writer.written());
}

/** Adds up rows as they are read. */
export class RowSum implements HashedRows {
  rowCount = 0;
  rowSum = 0n;
  readonly #scratch = new ByteWriter();

  add(key: string, value: Uint8Array): void {
    this.rowCount += 1;
    this.rowSum = BigInt.asUintN(64, this.rowSum + rowChecksum(key, value, this.#scratch));
  }

  remove(key: string, value: Uint8Array): void {
    this.rowCount -= 1;
    this.rowSum = BigInt.asUintN(64, this.rowSum - rowChecksum(key, value, this.#scratch));
  }
}

/** Changed rows that may wait for a fold: bounds the pause of one, and the old entries kept for it. */
const FOLD_ROWS_MAX = 512;

export class StateHash {
  readonly #sum = new RowSum();
  readonly #before = new Map<string, StateRow | null>();

  /** Takes a row that comes from storage into the sum. */
  load(key: string, value: Uint8Array): void {
    this.#sum.add(key, value);
  }

  /** Must be called before each change: `before` is the entry as it stands, null where there is none. */
  touch(key: string, before: StateRow | null): void {
    if (!this.#before.has(key)) this.#before.set(key, before);
  }

  get isFoldDue(): boolean {
    return this.#before.size >= FOLD_ROWS_MAX;
  }

  /** Brings the sum up to date; `current` looks a row up as it stands. */
  fold(current: (key: string) => StateRow | null): HashedRows {
    for (const [key, before] of this.#before) {
      if (before !== null) this.#sum.remove(key, encodeRowValue(before));
      const after = current(key);
      if (after !== null) this.#sum.add(key, encodeRowValue(after));
    }
    this.#before.clear();
    return { rowCount: this.#sum.rowCount, rowSum: this.#sum.rowSum };
  }
}

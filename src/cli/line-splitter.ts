/** Pieces of input as lines: `\n` or `\r\n` ends one and is no part of it; the last may have no end. Holds one unfinished line. */
import { concatBytes } from "../lib/bytes.ts";

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/** A line is longer than it may be; `split` stopped in front of it. */
export class LineTooLong extends Error {
  override readonly name = "LineTooLong";
}

export class LineSplitter {
  readonly #bytesMax: number;
  /** Of the line whose end has not come. */
  #parts: Uint8Array[] = [];
  #size = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The lines that end in this piece, in its memory where they are whole in it: to be used before the next piece comes. */
  *split(piece: Uint8Array): Generator<Uint8Array, void, undefined> {
    let from = 0;
    for (let end = piece.indexOf(LINE_FEED); end >= 0; end = piece.indexOf(LINE_FEED, from)) {
      const line = this.#finish(piece.subarray(from, end));
      from = end + 1;
      yield line.at(-1) === CARRIAGE_RETURN ? line.subarray(0, -1) : line;
    }
    if (from < piece.length) this.#keep(new Uint8Array(piece.subarray(from)));
  }

  /** The line that the input ended in; null where it ended behind a line. */
  rest(): Uint8Array | null {
    return this.#size === 0 ? null : this.#finish(new Uint8Array(0));
  }

  #finish(end: Uint8Array): Uint8Array {
    this.#check(end.length);
    if (this.#size === 0) return end;
    const line = concatBytes([...this.#parts, end]);
    this.#parts = [];
    this.#size = 0;
    return line;
  }

  #keep(part: Uint8Array): void {
    this.#check(part.length);
    this.#parts.push(part);
    this.#size += part.length;
  }

  #check(more: number): void {
    if (this.#size + more > this.#bytesMax) throw new LineTooLong(`a line of more than ${this.#bytesMax} bytes`);
  }
}

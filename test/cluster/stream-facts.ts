/**
 * What a client knows for certain about one life of one stream, and the judgement of what it then sees.
 *
 * Facts come from answers and from reads: a record that was once read is as binding as an acknowledged
 * one. A request without an answer leaves both outcomes open until a read settles it.
 *
 * Each record's text names who wrote it, in which attempt and where in the batch, and is otherwise
 * computed from that, so whatever is read can be traced and compared byte for byte.
 */

export interface Attempt {
  /** Unique in the run; a writer has one attempt under way. */
  readonly writer: string;
  /** Rises with each attempt of the writer. */
  readonly number: number;
  /** Length of each record's text. */
  readonly lengths: readonly number[];
  /** Durable tail that was known when it was first sent: it cannot lie below. */
  readonly notBelow: number;
  outcome: "open" | "taken" | "refused";
  /** Of its first record, once told or seen. */
  offset: number | null;
}

export interface StreamHead {
  readonly startOffset: number;
  readonly tail: number;
  readonly isClosed: boolean;
}

const FILLER = "abcdefghijklmnopqrstuvwxyz0123456789".repeat(64);
const SHOWN_LENGTH = 60;

export class StreamFacts {
  readonly name: string;
  readonly isJson: boolean;
  /** Both true: not known. */
  mayExist = false;
  mayBeMissing = true;
  mayBeOpen = true;
  mayBeClosed = false;
  /** Durable tail at least. */
  tailMin = 0;
  /** Trim point: what was answered, and the farthest that was ever asked for. */
  startMin = 0;
  startMax = 0;
  /** Everything below has been read in order and judged. */
  scannedTo = 0;
  readonly violations: string[] = [];
  readonly #attempts = new Map<string, Attempt>();
  /** Record key by offset, as told or seen. */
  readonly #keys: string[] = [];
  /** Attempts known to be taken whose place is not known. */
  readonly #unplaced = new Set<Attempt>();
  /** Highest attempt of each writer below `scannedTo`. */
  #lastNumbers = new Map<string, number>();

  constructor(name: string, isJson: boolean) {
    this.name = name;
    this.isJson = isJson;
  }

  get recordCount(): number {
    return this.tailMin;
  }

  /** Call before an attempt is sent for the first time. */
  begin(writer: string, number: number, lengths: readonly number[]): Attempt {
    const attempt: Attempt = { writer, number, lengths, notBelow: this.tailMin, outcome: "open", offset: null };
    this.#attempts.set(`${writer}:${number}`, attempt);
    return attempt;
  }

  /** The records of an attempt, as they are sent and stored. */
  texts(attempt: Attempt): string[] {
    return attempt.lengths.map((length, index) => this.#text(`${attempt.writer}:${attempt.number}:${index}`, length));
  }

  /** The attempt was answered with success; null for one that was recognised as taken before. */
  taken(attempt: Attempt, offset: number | null): void {
    if (attempt.outcome === "refused") this.#violate(`attempt ${attempt.writer}:${attempt.number} was refused, then taken`);
    attempt.outcome = "taken";
    if (offset === null) {
      if (attempt.offset === null && attempt.lengths.length > 0) this.#unplaced.add(attempt);
      return;
    }
    if (attempt.lengths.length > 0) this.#place(offset, attempt, 0, "acknowledged");
    this.tailMin = Math.max(this.tailMin, offset + attempt.lengths.length);
  }

  refused(attempt: Attempt): void {
    if (attempt.outcome === "taken" || attempt.offset !== null) {
      this.#violate(`attempt ${attempt.writer}:${attempt.number} is in the stream, and was then refused`);
    }
    attempt.outcome = "refused";
  }

  /** A record was read. */
  observe(offset: number, stored: string): void {
    const text = this.isJson ? stored.slice(1, -1) : stored;
    const [key = ""] = text.split("|", 1);
    const [writer, number, index] = key.split(":");
    const attempt = this.#attempts.get(`${writer}:${number}`);
    const length = attempt?.lengths[Number(index)];
    if (attempt === undefined || length === undefined || stored !== this.#text(key, length)) {
      this.#violate(
        `offset ${offset} holds ${stored.length} characters that nobody sent: ${JSON.stringify(stored.slice(0, SHOWN_LENGTH))}`,
      );
      return;
    }
    if (attempt.outcome === "refused") this.#violate(`offset ${offset} holds ${key}, which was refused`);
    this.#place(offset, attempt, Number(index), "read");
    this.tailMin = Math.max(this.tailMin, offset + 1);
  }

  /** What a quiet stream says of itself; null where there is none. Settles what was open. */
  observeHead(head: StreamHead | null): void {
    if (head === null) {
      if (!this.mayBeMissing) this.#violate(`it is missing, with ${this.tailMin} records`);
      this.mayExist = false;
      this.mayBeMissing = true;
      return;
    }
    if (!this.mayExist) this.#violate("it exists, though its deletion was answered");
    this.mayExist = true;
    this.mayBeMissing = false;
    if (head.tail < this.tailMin) this.#violate(`its tail is ${head.tail}, acknowledged or read was up to ${this.tailMin}`);
    if (!this.mayBeOpen && head.tail > this.tailMin) this.#violate(`it was closed at ${this.tailMin}, its tail is ${head.tail}`);
    this.tailMin = head.tail;
    if (head.isClosed ? !this.mayBeClosed : !this.mayBeOpen) {
      this.#violate(head.isClosed ? "it is closed, and nobody closed it" : "it is open, though its closing was answered");
    }
    this.mayBeOpen = !head.isClosed;
    this.mayBeClosed = head.isClosed;
    if (head.startOffset < this.startMin || head.startOffset > this.startMax) {
      this.#violate(`it starts at ${head.startOffset}; trims were answered to ${this.startMin} and asked for to ${this.startMax}`);
    }
    this.startMin = head.startOffset;
    this.startMax = head.startOffset;
  }

  /** Where the next scan in order begins; `all` judges everything again. */
  beginScan(all: boolean): number {
    if (all || this.startMin > this.scannedTo) {
      this.scannedTo = this.startMin;
      this.#lastNumbers = new Map();
    }
    return this.scannedTo;
  }

  /** The next record of a scan. */
  scan(offset: number, stored: string): void {
    if (offset !== this.scannedTo) this.#violate(`offset ${offset} was read where ${this.scannedTo} was due`);
    this.scannedTo = offset + 1;
    this.observe(offset, stored);
    const [writer = "", number] = this.#keys[offset]?.split(":") ?? [];
    const last = this.#lastNumbers.get(writer) ?? -1;
    if (Number(number) < last) this.#violate(`offset ${offset} holds attempt ${number} of ${writer} behind its attempt ${last}`);
    this.#lastNumbers.set(writer, Number(number));
  }

  /** The scan has reached its end; the stream is quiet. */
  endScan(): void {
    if (this.scannedTo !== this.tailMin) this.#violate(`reading it ended at ${this.scannedTo} of ${this.tailMin}`);
    for (const attempt of this.#unplaced) {
      if (attempt.offset === null && attempt.notBelow >= this.startMin) {
        this.#violate(`attempt ${attempt.writer}:${attempt.number} was acknowledged as a repeat, and is not there`);
      }
    }
    this.#unplaced.clear();
    for (const attempt of this.#attempts.values()) this.#judgeWhole(attempt);
  }

  report(what: string): void {
    this.#violate(what);
  }

  /** A batch is there as a whole, or not at all. */
  #judgeWhole(attempt: Attempt): void {
    if (attempt.offset === null) return;
    const end = attempt.offset + attempt.lengths.length;
    if (end > this.tailMin) this.#violate(`attempt ${attempt.writer}:${attempt.number} reaches to ${end}, behind the tail ${this.tailMin}`);
  }

  #place(offset: number, attempt: Attempt, index: number, how: string): void {
    const first = offset - index;
    // A batch is there as a whole or not at all: one record claims the places of the others.
    for (const at of attempt.lengths.keys()) this.#placeOne(first + at, attempt, at, how);
  }

  #placeOne(offset: number, attempt: Attempt, index: number, how: string): void {
    const key = `${attempt.writer}:${attempt.number}:${index}`;
    const known = this.#keys[offset];
    if (known !== undefined && known !== key) this.#violate(`offset ${offset} was ${known}, and ${key} is ${how} there`);
    const first = offset - index;
    if (attempt.offset !== null && attempt.offset !== first) {
      this.#violate(`attempt ${attempt.writer}:${attempt.number} is at ${attempt.offset}, and ${how} at ${first}: stored twice, or moved`);
    }
    if (first < attempt.notBelow) {
      this.#violate(
        `attempt ${attempt.writer}:${attempt.number} is ${how} at ${first}, below what was durable before it was sent (${attempt.notBelow})`,
      );
    }
    attempt.offset = first;
    attempt.outcome = attempt.outcome === "refused" ? "refused" : "taken";
    this.#keys[offset] = key;
  }

  #violate(what: string): void {
    this.violations.push(`${this.name}: ${what}`);
  }

  #text(key: string, length: number): string {
    let text = `${key}|`;
    const shift = (key.charCodeAt(key.length - 1) + key.length) % 36;
    while (text.length < length) text += FILLER.slice(shift, shift + Math.min(length - text.length, FILLER.length - shift));
    return this.isJson ? `"${text}"` : text;
  }
}

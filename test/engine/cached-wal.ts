/** Entries in a log cache, encoded and placed as a WAL leaves them: durable, and with a tail state behind each cut. */
import { type CachedSegment, type LogCache, LogEntry } from "../../src/engine/log-cache.ts";
import { TailFold } from "../../src/engine/tail-fold.ts";
import type { ProducerStamp, TailState } from "../../src/engine/tail-state.ts";
import { emptyTailState } from "../../src/engine/tail-state-format.ts";
import { encodeWalEntry } from "../../src/engine/wal-entry.ts";
import { WalSegment } from "../../src/engine/wal-segment.ts";
import { reserveSegmentHeader } from "../../src/engine/wal-segment-format.ts";
import { ByteWriter } from "../../src/lib/bytes.ts";
import type { RegistrationName } from "../../src/lib/registration.ts";
import { bodyName } from "./data-object-fixtures.ts";
import { plainRecord } from "./record-fixtures.ts";

export interface CachedChange {
  readonly streamId: number;
  /** Records in the entry; their bodies name stream and offset. */
  readonly count: number;
  readonly bodyBytes?: number;
  readonly closes?: boolean;
  readonly producer?: ProducerStamp;
}

export class CachedWal {
  readonly #folds = new Map<number, TailFold>();
  /** Streams with an entry behind the last cut. */
  readonly #begun = new Set<number>();
  #number = 0;

  constructor(
    readonly cache: LogCache,
    readonly registration: RegistrationName,
  ) {}

  /** The number of the last segment. */
  get number(): number {
    return this.#number;
  }

  /** The stream begins, or goes on, behind `tail`; without it at 0. */
  begin(streamId: number, tail: TailState): void {
    this.#folds.set(streamId, new TailFold(tail));
  }

  /** The next entry of every stream carries its tail state. */
  cut(): void {
    this.#begun.clear();
  }

  tail(streamId: number): TailState {
    return this.#fold(streamId).state();
  }

  /** Adds the next segment, with an entry for each change. */
  segment(...changes: readonly CachedChange[]): CachedSegment {
    const out = new ByteWriter(1024);
    reserveSegmentHeader(out);
    const placed = changes.map((change) => {
      const { streamId, count, closes = false, producer = null, bodyBytes = 0 } = change;
      const fold = this.#fold(streamId);
      const baseOffset = fold.nextOffset;
      const head = {
        streamId,
        changeNumber: fold.changeNumber + 1,
        baseOffset,
        nextOffset: baseOffset + count,
        timestampMs: 1000 + baseOffset,
        base: this.#begun.has(streamId) ? null : fold.state(),
        producer,
        streamSeq: null,
        closes,
      };
      this.#begun.add(streamId);
      const before = fold.state();
      fold.apply(head);
      const records = Array.from({ length: count }, (_, at) => plainRecord(bodyName(streamId, baseOffset + at).padEnd(bodyBytes, ".")));
      const start = out.length;
      const batchStart = encodeWalEntry(out, head, records.length === 0 ? null : records);
      return { head, before, start, end: out.length, batchStart };
    });
    const cached = this.cache.addSegment(this.registration, WalSegment.stored(++this.#number, out.copy()), 0);
    for (const { head, before, start, end, batchStart } of placed) {
      const log = this.cache.openLog(head.streamId, before);
      const { changeNumber, baseOffset, nextOffset } = head;
      this.cache.addEntry(cached, new LogEntry(log, cached, start, end, changeNumber, baseOffset, nextOffset, batchStart, null));
      log.durableOffset = nextOffset;
      log.durableChangeNumber = changeNumber;
      log.lastNumber = cached.number;
    }
    return cached;
  }

  #fold(streamId: number): TailFold {
    let fold = this.#folds.get(streamId);
    if (fold === undefined) {
      fold = new TailFold(emptyTailState());
      this.#folds.set(streamId, fold);
    }
    return fold;
  }
}

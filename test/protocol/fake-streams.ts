/**
 * One stream in memory, as far as the listeners' tests need it: what it does not model it refuses. The
 * real service is tested where it is, and behind the listeners by the suites that run the server.
 */
import { encodeRecordBatch } from "../../src/engine/record-batch.ts";
import { RecordBatchView } from "../../src/engine/record-batch-view.ts";
import { ByteWriter, utf8Encoder } from "../../src/lib/bytes.ts";
import { PicoError } from "../../src/lib/errors.ts";
import type { ReadPage, ReadRequest, StreamInfo, StreamService, Waiter, WaitOutcome } from "../../src/streams/stream-service.ts";

export class FakeStream implements StreamService {
  readonly batches: RecordBatchView[] = [];
  isClosed = false;
  isDeleted = false;
  streamId = 1;
  nextOffset = 0;
  reads = 0;
  /** Runs before each read: where a test changes the stream between a look and a wait. */
  beforeRead: (() => void) | null = null;
  /** Waiters that were parked, woken ones included. */
  parks = 0;
  readonly #waiters = new Set<() => void>();
  readonly #parked = new Map<Waiter, () => void>();

  constructor(
    readonly name: string,
    readonly contentType = "text/plain",
  ) {}

  push(...bodies: string[]): void {
    const out = new ByteWriter();
    const records = bodies.map((body) => ({ key: null, headers: [], body: utf8Encoder.encode(body) }));
    encodeRecordBatch(out, this.nextOffset, 1760000000123, records);
    this.batches.push(new RecordBatchView(out.copy()));
    this.nextOffset += bodies.length;
    this.wake();
  }

  wake(): void {
    for (const waiter of [...this.#waiters]) waiter();
  }

  head(name: string): StreamInfo {
    if (name !== this.name || this.isDeleted) throw new PicoError("not_found", `there is no stream ${name}`);
    return {
      streamId: this.streamId,
      name,
      settings: { contentType: this.contentType, ttlSeconds: null, expiresAtMs: null },
      startOffset: 0,
      nextOffset: this.nextOffset,
      isClosed: this.isClosed,
      fork: null,
    };
  }

  read(request: ReadRequest): ReadPage {
    this.reads += 1;
    this.beforeRead?.();
    const info = this.head(request.name);
    const from = request.from === "tail" ? info.nextOffset : request.from === "start" ? 0 : request.from;
    if (from > info.nextOffset) throw new PicoError("bad_request", "above the tail");
    const first = this.batches.find((batch) => batch.endOffset > from);
    const fit = first?.fit(from, request.recordsMax || first.count, request.bytesMax, true) ?? { endOffset: from, sizeBytes: 0 };
    const { endOffset: next, sizeBytes } = fit;
    const slices = first === undefined ? [] : [{ batch: first, from, to: next }];
    const isUpToDate = next === info.nextOffset;
    return { info, from, next, slices, sizeBytes, isUpToDate, isEnd: isUpToDate && this.isClosed };
  }

  wait(streamId: number, offset: number, _timeoutMs: number, signal: AbortSignal | null): Promise<WaitOutcome> {
    return new Promise((resolve) => {
      const look = () => {
        const outcome = this.#outcome(streamId, offset, signal);
        if (outcome === null) return;
        this.#waiters.delete(look);
        resolve(outcome);
      };
      this.#waiters.add(look);
      signal?.addEventListener("abort", look, { once: true });
      look();
    });
  }

  park(streamId: number, waiter: Waiter): boolean {
    const look = () => {
      const outcome = this.#outcome(streamId, waiter.offset, null);
      if (outcome === null) return;
      this.unpark(streamId, waiter);
      waiter.wake(outcome);
    };
    if (this.#outcome(streamId, waiter.offset, null) !== null) return false;
    this.parks += 1;
    this.#waiters.add(look);
    this.#parked.set(waiter, look);
    return true;
  }

  unpark(_streamId: number, waiter: Waiter): void {
    const look = this.#parked.get(waiter);
    this.#parked.delete(waiter);
    if (look !== undefined) this.#waiters.delete(look);
  }

  get parkedCount(): number {
    return this.#parked.size;
  }

  #outcome(streamId: number, offset: number, signal: AbortSignal | null): WaitOutcome | null {
    if (this.isDeleted || streamId !== this.streamId) return "deleted";
    if (this.nextOffset > offset) return "data";
    if (this.isClosed) return "closed";
    return signal?.aborted === true ? "timeout" : null;
  }

  create = () => refuse();
  append = () => refuse();
  trim = () => refuse();
  delete = () => refuse();
  list = () => ({ items: [], hasMore: false });
}

function refuse(): Promise<never> {
  return Promise.reject(new PicoError("unavailable", "not modelled"));
}

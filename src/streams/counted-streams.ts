/**
 * The streams of a node with what is appended and read counted on the way: each append until it is
 * durable or refused, each page until it is at hand. A client's network is in neither, so that a slow
 * one is not taken for a slow node.
 *
 * Counting comes behind the result and cannot throw (FAULTS A5).
 */
import type { NewRecord } from "../engine/record.ts";
import type { Clock } from "../lib/clock.ts";
import { DurationHistogram } from "../lib/duration-histogram.ts";
import type {
  AppendRequest,
  AppendResult,
  CreateRequest,
  CreateResult,
  ListRequest,
  ListResult,
  MaybePromise,
  ReadPage,
  ReadRequest,
  StreamInfo,
  StreamService,
  Waiter,
  WaitOutcome,
} from "./stream-service.ts";

/** Since the start. A create's first records count as appended records, not as an append. */
export class StreamFigures {
  /** Appends that wrote something. */
  appendCount = 0;
  appendRecords = 0;
  /** Key, body and header bytes. */
  appendBytes = 0;
  /** From the decision to durability, of the appends that wrote. */
  readonly appends = new DurationHistogram();
  /** Pages made for readers, those of live reads included. */
  readCount = 0;
  readRecords = 0;
  readBytes = 0;
  readonly reads = new DurationHistogram();
}

export class CountedStreams implements StreamService {
  constructor(
    private readonly streams: StreamService,
    private readonly clock: Pick<Clock, "monotonicMs">,
    private readonly figures: StreamFigures,
  ) {}

  async create(request: CreateRequest): Promise<CreateResult> {
    const result = await this.streams.create(request);
    if (result.isNew) this.#countRecords(request.records);
    return result;
  }

  append(request: AppendRequest): Promise<AppendResult> {
    const startedMs = this.clock.monotonicMs();
    return this.streams.append(request).then((result) => {
      if (result.kind === "appended") {
        this.figures.appendCount += 1;
        this.#countRecords(request.records);
        this.figures.appends.record(this.clock.monotonicMs() - startedMs);
      }
      return result;
    });
  }

  trim(name: string, offset: bigint): Promise<{ readonly startOffset: number }> {
    return this.streams.trim(name, offset);
  }

  delete(name: string): Promise<void> {
    return this.streams.delete(name);
  }

  head(name: string): MaybePromise<StreamInfo> {
    return this.streams.head(name);
  }

  read(request: ReadRequest): MaybePromise<ReadPage> {
    const startedMs = this.clock.monotonicMs();
    const page = this.streams.read(request);
    if (page instanceof Promise) return page.then((ready) => this.#countPage(ready, startedMs));
    return this.#countPage(page, startedMs);
  }

  wait(streamId: number, offset: number, timeoutMs: number, signal: AbortSignal | null): Promise<WaitOutcome> {
    return this.streams.wait(streamId, offset, timeoutMs, signal);
  }

  park(streamId: number, waiter: Waiter): boolean {
    return this.streams.park(streamId, waiter);
  }

  unpark(streamId: number, waiter: Waiter): void {
    this.streams.unpark(streamId, waiter);
  }

  list(request: ListRequest): ListResult {
    return this.streams.list(request);
  }

  #countRecords(records: readonly NewRecord[]): void {
    this.figures.appendRecords += records.length;
    for (const record of records) this.figures.appendBytes += sizeOf(record);
  }

  #countPage(page: ReadPage, startedMs: number): ReadPage {
    const figures = this.figures;
    figures.readCount += 1;
    figures.readRecords += page.next - page.from;
    figures.readBytes += page.sizeBytes;
    figures.reads.record(this.clock.monotonicMs() - startedMs);
    return page;
  }
}

/** As pages are measured. */
function sizeOf({ key, body, headers }: NewRecord): number {
  let bytes = (key?.length ?? 0) + (body?.length ?? 0);
  for (const { name, value } of headers) bytes += Buffer.byteLength(name) + (value?.length ?? 0);
  return bytes;
}

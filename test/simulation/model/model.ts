/**
 * What the cluster has promised so far. Actors tell it what they send and what they are answered; it
 * compares each answer with everything known before and fails the run at the first contradiction. It
 * never talks to a node itself.
 *
 * A request spans from its sending to its answer. What held when it was sent must still hold in its
 * answer (`Span.floors`), and an answer about a life of a stream needs that life to exist at some moment
 * of the span.
 */
import type { PicoError } from "../../../src/lib/errors.ts";
import type { AppendResult, CreateRequest, CreateResult, ReadPage, StreamInfo, WaitOutcome } from "../../../src/streams/stream-service.ts";
import type { World } from "../world/world.ts";
import { Batch, type BatchPlan } from "./batch.ts";
import type { DatabaseTime, LifeFacts, LifeLog } from "./life-facts.ts";
import { type Floor, StreamModel } from "./stream-model.ts";

export interface Span {
  readonly name: string;
  readonly startMs: number;
  readonly startedAt: DatabaseTime;
  /** By stream id: the bounds that held when the request was sent. */
  readonly floors: ReadonlyMap<number, Floor>;
}

const NO_FLOOR: Floor = { startOffset: 0, nextOffset: 0, isClosed: false };

/**
 * How far a node's idea of the database's time may be off: it is an answer's age at most, and drift.
 * An expiry that comes early by less than this is not called early.
 */
const EXPIRY_TOLERANCE_MS = 1000;

export class Model {
  readonly #batches: Batch[] = [];
  readonly #streams = new Map<number, StreamModel>();
  /** Acknowledged, and it is not known in which life of the name. */
  readonly #unsettled: { readonly batch: Batch; readonly startOffset: number; readonly candidates: readonly LifeFacts[] }[] = [];
  /** Names that somebody asked to close, or to create closed. */
  readonly #closersOf = new Set<string>();
  readonly #trimRequestedMax = new Map<string, number>();

  constructor(
    private readonly world: World,
    private readonly lives: LifeLog,
  ) {}

  plan(plan: Omit<BatchPlan, "batchId">): Batch {
    const batch = new Batch({ ...plan, batchId: this.#batches.length });
    this.#batches.push(batch);
    if (plan.closes) this.#closersOf.add(plan.name);
    return batch;
  }

  begin(name: string): Span {
    const floors = new Map<number, Floor>();
    for (const facts of this.lives.livesOf(name)) floors.set(facts.streamId, this.stream(facts.streamId).floor);
    return { name, startMs: this.world.nowMs, startedAt: this.lives.databaseNow(), floors };
  }

  /** Lives that the name has had so far. */
  livesCount(name: string): number {
    return this.lives.livesOf(name).length;
  }

  /** Highest tail known of any life of the name. */
  knownTail(name: string): number {
    return Math.max(0, ...this.lives.livesOf(name).map((facts) => this.stream(facts.streamId).floor.nextOffset));
  }

  /** The model of a life, which must be in the command log. */
  stream(streamId: number): StreamModel {
    const known = this.#streams.get(streamId);
    if (known !== undefined) return known;
    const facts = this.lives.life(streamId);
    if (facts === null) throw this.world.failed(`a node speaks of stream ${streamId}, which the command log does not know`);
    const source = facts.fork === null ? null : this.stream(facts.fork.sourceId);
    const stream = new StreamModel(this.world, facts, source, (batchId) => this.#batches[batchId] ?? null);
    stream.trimRequestedMax = Math.max(stream.trimRequestedMax, this.#trimRequestedMax.get(facts.name) ?? 0);
    this.#streams.set(streamId, stream);
    return stream;
  }

  willClose(name: string): void {
    this.#closersOf.add(name);
  }

  willTrim(name: string, offset: number): void {
    this.#trimRequestedMax.set(name, Math.max(offset, this.#trimRequestedMax.get(name) ?? 0));
    for (const facts of this.lives.livesOf(name)) {
      const stream = this.stream(facts.streamId);
      stream.trimRequestedMax = Math.max(stream.trimRequestedMax, offset);
    }
  }

  sawInfo(span: Span, info: StreamInfo, what: string): StreamModel {
    const stream = this.stream(info.streamId);
    const { facts } = stream;
    this.world.check(facts.name === info.name, () => `${what}: stream ${info.streamId} is ${facts.name}, not ${info.name}`);
    this.world.check(
      facts.removedMs === null || facts.removedMs >= span.startMs,
      () => `${what} of ${stream.label}: answered, though it was removed at ${facts.removedMs} and asked for at ${span.startMs}`,
    );
    this.world.check(
      !info.isClosed || facts.isCreatedClosed || this.#closersOf.has(info.name),
      () => `${what} of ${stream.label}: closed, and nobody closed it`,
    );
    stream.knownSinceMs ??= this.world.nowMs;
    stream.see(info, span.floors.get(info.streamId) ?? NO_FLOOR, what);
    return stream;
  }

  sawCreated(span: Span, request: CreateRequest, batch: Batch | null, result: CreateResult): void {
    const { info, isNew } = result;
    const stream = this.sawInfo(span, info, "create");
    if (!isNew) {
      if (batch !== null) this.#refuse(batch, "create of an existing stream");
      return;
    }
    const { facts } = stream;
    this.world.check(facts.createdMs >= span.startMs, () => `create of ${stream.label} is called new, and it was there before`);
    if (request.fork !== null) this.#sawForked(request.fork, stream);
    if (batch !== null) {
      batch.status = "acked";
      stream.placeBatch(batch, stream.firstOwnOffset, null);
    }
    if (request.isClosed) stream.seeClosedAt(stream.firstOwnOffset + (batch?.plan.count ?? 0), "create");
  }

  sawCreateRefused(span: Span, request: CreateRequest, error: PicoError, batch: Batch | null): void {
    // A fork's source may be what is missing, which says nothing about the name.
    if (request.fork === null) this.sawRefusal(span, error, "create", batch);
    else if (batch !== null && isCertain(error)) this.#refuse(batch, `fork refused with ${error.code}`);
  }

  #sawForked(asked: NonNullable<CreateRequest["fork"]>, stream: StreamModel): void {
    const { fork } = stream.facts;
    if (fork === null) throw this.world.failed(`create of ${stream.label}: asked for a fork, and it is none`);
    const isCounted = stream.facts.settings.contentType.includes("json");
    const expected = asked.offset === null ? null : asked.offset + (isCounted ? asked.subOffset : 0);
    // As many bytes as the record there has are the whole record, which is shared.
    const isWhole = !isCounted && asked.subOffset > 0 && expected !== null && fork.offset === expected + 1;
    this.world.check(
      expected === null || fork.offset === expected || isWhole,
      () => `create of ${stream.label}: forked at ${fork.offset}, asked for ${expected}`,
    );
    this.world.check(fork.sourceName === asked.sourceName, () => `create of ${stream.label}: forked from ${fork.sourceName}`);
  }

  /** A request that renews the life of the stream succeeded. */
  touched(span: Span, streamId: number): void {
    const stream = this.stream(streamId);
    stream.lastTouchMs = Math.max(stream.lastTouchMs, span.startedAt.atMs + span.startedAt.setBackMs);
    this.checkExpiry(stream.facts);
  }

  sawPage(span: Span, page: ReadPage, asked: number | null): StreamModel {
    const stream = this.sawInfo(span, page.info, "read");
    const { label } = stream;
    this.world.check(asked === null || page.from === asked, () => `read of ${label} from ${asked} began at ${page.from}`);
    let offset = page.from;
    let timestampMs = 0;
    for (const slice of page.slices) {
      for (const record of slice.batch.records(slice.from)) {
        if (record.offset >= slice.to) break;
        this.world.check(record.offset === offset, () => `read of ${label}: record ${record.offset} where ${offset} was due`);
        this.world.check(record.timestampMs >= timestampMs, () => `read of ${label}: the timestamp at ${offset} is below the one before`);
        timestampMs = record.timestampMs;
        stream.seeRecord(record);
        offset += 1;
      }
    }
    this.world.check(offset === page.next, () => `read of ${label}: the page goes to ${page.next}, its records to ${offset}`);
    this.world.check(page.next <= page.info.nextOffset, () => `read of ${label}: the page goes beyond the tail`);
    this.world.check(
      page.isUpToDate === page.next >= page.info.nextOffset || !page.isUpToDate,
      () => `read of ${label}: up to date at ${page.next}, and the tail is ${page.info.nextOffset}`,
    );
    this.world.check(!page.isEnd || (page.isUpToDate && page.info.isClosed), () => `read of ${label}: an end that is none`);
    this.touched(span, page.info.streamId);
    return stream;
  }

  sawAppend(span: Span, batch: Batch, result: AppendResult): void {
    const { plan } = batch;
    if (result.kind === "duplicate") {
      this.world.check(plan.producer !== null, () => `append to ${plan.name}: a duplicate without a producer`);
      this.world.check(
        plan.producer === null || result.producerSeq === null || result.producerSeq >= plan.producer.seq,
        () => `append to ${plan.name}: a duplicate of ${plan.producer?.seq}, and the last one is ${result.producerSeq}`,
      );
      if (batch.status === "open") batch.status = "duplicate";
    } else if (result.kind === "appended") {
      batch.status = "acked";
      this.world.check(
        result.isClosed === plan.closes,
        () => `append to ${plan.name}: closed is ${result.isClosed}, asked for ${plan.closes}`,
      );
      this.world.check(
        plan.count === 0 || (result.startOffset !== null && result.nextOffset === result.startOffset + plan.count),
        () => `append to ${plan.name}: ${plan.count} records from ${result.startOffset} to ${result.nextOffset}`,
      );
    }
    const candidates = this.candidates(span);
    this.world.check(candidates.length > 0, () => `append to ${span.name} acknowledged, and no such stream existed meanwhile`);
    const only = candidates.length === 1 ? candidates[0] : undefined;
    if (only === undefined) {
      if (result.startOffset !== null) this.#unsettled.push({ batch, startOffset: result.startOffset, candidates });
      return;
    }
    const stream = this.stream(only.streamId);
    if (result.kind === "appended" && result.startOffset !== null) stream.placeBatch(batch, result.startOffset, result.timestampMs);
    const floor = span.floors.get(only.streamId) ?? NO_FLOOR;
    if (result.isClosed) stream.seeClosedAt(result.nextOffset, "append");
    this.world.check(
      result.nextOffset >= floor.nextOffset,
      () => `append to ${stream.label}: tail ${result.nextOffset} fell below ${floor.nextOffset}`,
    );
    this.world.check(result.kind !== "appended" || !floor.isClosed, () => `append to ${stream.label} acknowledged after its close`);
    if (result.kind === "appended") this.touched(span, only.streamId);
  }

  /** Lives of the name that existed at some moment of the span. */
  candidates(span: Span): readonly LifeFacts[] {
    return this.lives.livesOf(span.name).filter((facts) => facts.removedMs === null || facts.removedMs >= span.startMs);
  }

  /** The answer says that there is no such stream, or that it is deleted. */
  sawAbsent(span: Span, what: string): void {
    const lives = this.lives.livesOf(span.name);
    const last = lives[lives.length - 1];
    if (last === undefined || last.removedMs !== null || last.createdMs >= span.startMs) return;
    // It lived all the time. Only an expiry that the log does not show yet explains the answer.
    this.#checkDue(last, this.lives.databaseNow(), `${what} of ${span.name} says that there is none`);
  }

  /** A life that expired must have been due. */
  checkExpiry(facts: LifeFacts): void {
    if (facts.expiredAt !== null) this.#checkDue(facts, facts.expiredAt, "it expired");
  }

  /**
   * A sliding deadline is held to time that never falls: where the database's clock is set back behind a renewal
   * and the owner then dies, the new deadline counts from the end of its registration, by the clock as it is then.
   */
  #checkDue(facts: LifeFacts, at: DatabaseTime, what: string): void {
    const { ttlSeconds, expiresAtMs } = facts.settings;
    const stream = this.stream(facts.streamId);
    const dueMs = ttlSeconds === null ? expiresAtMs : stream.lastTouchMs + Number(ttlSeconds) * 1000;
    const atMs = ttlSeconds === null ? at.atMs : at.atMs + at.setBackMs;
    this.world.check(
      dueMs !== null && atMs >= dueMs - EXPIRY_TOLERANCE_MS,
      () => `${stream.label}: ${what} at database time ${atMs}, and it was due at ${dueMs} (last renewed at ${stream.lastTouchMs})`,
    );
  }

  /** A refusal that depends on the stream's state. */
  sawRefusal(span: Span, error: PicoError, what: string, batch: Batch | null): void {
    const { code } = error;
    if (code === "not_found" || code === "gone") this.sawAbsent(span, what);
    if (code === "closed") this.#sawClosed(span, error, what);
    if (batch !== null && isCertain(error)) this.#refuse(batch, `${what} refused with ${code}`);
  }

  /** The batch is certainly not written, unless an earlier try of it may yet be. */
  #refuse(batch: Batch, what: string): void {
    if (batch.underWay > 0 || batch.isOpen || batch.status !== "open") return;
    batch.status = "refused";
    for (const stream of this.#streams.values()) {
      this.world.check(!stream.holds(batch.plan.batchId), () => `${what}, and its records are in ${stream.label}`);
    }
  }

  /** A read at `asked` was refused for its position. */
  sawPositionRefused(span: Span, error: PicoError, asked: number): void {
    const candidates = this.candidates(span);
    const only = candidates.length === 1 ? candidates[0] : undefined;
    if (only === undefined) return;
    const stream = this.stream(only.streamId);
    const floor = span.floors.get(only.streamId) ?? NO_FLOOR;
    this.world.check(
      error.code !== "bad_request" || asked > floor.nextOffset,
      () => `read of ${stream.label} at ${asked} refused as above the tail, which was ${floor.nextOffset} before`,
    );
    this.world.check(
      error.code !== "offset_gone" || asked < stream.trimRequestedMax,
      () => `read of ${stream.label} at ${asked} refused as trimmed, and nobody trimmed beyond ${stream.trimRequestedMax}`,
    );
  }

  /**
   * `passedMs`: when the tail was first known to be beyond the offset; `dueMs`: before this the wait
   * cannot have timed out.
   */
  sawWait(span: Span, streamId: number, offset: number, outcome: WaitOutcome, passedMs: number | null, dueMs: number): void {
    const stream = this.stream(streamId);
    const floor = span.floors.get(streamId) ?? NO_FLOOR;
    if (outcome === "timeout") {
      this.world.check(
        floor.nextOffset <= offset,
        () => `wait on ${stream.label} at ${offset} timed out, and the tail was ${floor.nextOffset} before`,
      );
      this.world.check(!floor.isClosed, () => `wait on ${stream.label} at ${offset} timed out, and it was closed before`);
      this.world.check(passedMs === null || passedMs >= dueMs, () => `wait on ${stream.label} at ${offset} slept through an append`);
    }
    if (outcome === "deleted") {
      this.world.check(stream.facts.removedMs !== null, () => `wait on ${stream.label} ended as deleted, and it lives`);
    }
    if (outcome === "closed") {
      this.world.check(
        stream.facts.isCreatedClosed || this.#closersOf.has(stream.facts.name),
        () => `wait on ${stream.label} ended as closed, and nobody closed it`,
      );
    }
  }

  sawTrim(span: Span, asked: number, startOffset: number): void {
    const candidates = this.candidates(span);
    const only = candidates.length === 1 ? candidates[0] : undefined;
    if (only === undefined) return;
    const stream = this.stream(only.streamId);
    const floor = span.floors.get(only.streamId) ?? NO_FLOOR;
    this.world.check(
      startOffset >= Math.min(asked, floor.nextOffset),
      () => `trim of ${stream.label} to ${asked} left the start at ${startOffset}, and the tail was ${floor.nextOffset}`,
    );
    stream.see(
      { ...stream.floor, startOffset, nextOffset: Math.max(startOffset, stream.floor.nextOffset) },
      { ...floor, isClosed: false },
      "trim",
    );
  }

  /** Every stream that a client knows and that lived all the time is listed; what is listed lived. */
  sawList(span: Span, found: ReadonlySet<string>): void {
    for (const facts of this.lives.lives()) {
      const { ttlSeconds, expiresAtMs } = facts.settings;
      const mayExpire = ttlSeconds !== null || expiresAtMs !== null;
      const isKnown = (this.stream(facts.streamId).knownSinceMs ?? span.startMs) < span.startMs;
      const mustBeFound = isKnown && facts.removedMs === null && !mayExpire;
      this.world.check(!mustBeFound || found.has(facts.name), () => `list: ${facts.name} is missing`);
    }
    for (const name of found) {
      // A view may lag behind a removal until that is answered.
      const isExplained = this.lives
        .livesOf(name)
        .some((facts) => facts.removedMs === null || (this.stream(facts.streamId).removalKnownMs ?? span.startMs) >= span.startMs);
      this.world.check(isExplained, () => `list: ${name} is no stream`);
    }
  }

  #sawClosed(span: Span, error: PicoError, what: string): void {
    const candidates = this.candidates(span);
    const only = candidates.length === 1 ? candidates[0] : undefined;
    if (only === undefined) return;
    this.world.check(
      only.isCreatedClosed || this.#closersOf.has(span.name),
      () => `${what} of ${span.name}: refused as closed, and nobody closed it`,
    );
    const { tail } = error.facts;
    if (typeof tail === "number") this.stream(only.streamId).seeClosedAt(tail, what);
  }

  sawRemoved(span: Span): void {
    for (const facts of this.lives.livesOf(span.name)) {
      this.world.check(
        facts.createdMs >= span.startMs || facts.removedMs !== null,
        () => `delete of ${span.name} answered, and stream ${facts.streamId} is still there`,
      );
      if (facts.removedMs !== null) this.stream(facts.streamId).removalKnownMs ??= this.world.nowMs;
    }
  }

  /** Everything was read: what must be there is. `present` are the lives found, whole. */
  checkFinal(present: ReadonlyMap<number, { readonly startOffset: number; readonly nextOffset: number }>, how: string): void {
    for (const facts of this.lives.lives()) {
      this.checkExpiry(facts);
      if (facts.removedMs !== null) continue;
      const bounds = present.get(facts.streamId);
      if (bounds === undefined) {
        this.#checkDue(facts, this.lives.databaseNow(), `it cannot be read ${how}`);
        continue;
      }
      this.stream(facts.streamId).checkWhole(bounds.startOffset, bounds.nextOffset);
    }
    for (const { batch, startOffset, candidates } of this.#unsettled) this.#checkUnsettled(batch, startOffset, candidates);
    for (const batch of this.#batches) if (batch.status === "duplicate") this.#checkDuplicate(batch);
  }

  #checkUnsettled(batch: Batch, startOffset: number, candidates: readonly LifeFacts[]): void {
    const isExplained = candidates.some(
      (facts) => facts.removedMs !== null || this.stream(facts.streamId).batchStart(batch.plan.batchId) === startOffset,
    );
    this.world.check(
      isExplained || batch.plan.count === 0,
      () => `batch ${batch.plan.batchId}, acknowledged in ${batch.plan.name} at ${startOffset}, is gone`,
    );
  }

  /** It was called a duplicate, so it must be somewhere: in a life that stands, or in one that is over. */
  #checkDuplicate(batch: Batch): void {
    const { plan } = batch;
    if (plan.count === 0) return;
    const isExplained = this.lives.livesOf(plan.name).some((facts) => {
      const stream = this.stream(facts.streamId);
      return facts.removedMs !== null || stream.holds(plan.batchId) || stream.floor.startOffset > 0;
    });
    this.world.check(isExplained, () => `batch ${plan.batchId} was called a duplicate, and is not in ${plan.name}`);
  }
}

/** The refusal says that nothing was written. */
export function isCertain({ code }: PicoError): boolean {
  return code !== "unavailable" && code !== "durability" && code !== "unknown_outcome" && code !== "fenced_node";
}

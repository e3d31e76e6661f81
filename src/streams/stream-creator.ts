/**
 * Creating streams. One that begins with records, or closed, is written to the WAL under its id first
 * and then proposed, so that it appears with all of it or not at all; entries whose create is refused or
 * was never sent are dropped by the upload, which waits for the outcome. The node carries such a create
 * to its outcome, whatever becomes of the request.
 *
 * A fork shares its source's records below the fork offset. A byte sub-offset inside a record makes the
 * rest of the way there the fork's own first record.
 */
import type { Engine } from "../engine/engine.ts";
import type { NewRecord } from "../engine/record.ts";
import { TailFold } from "../engine/tail-fold.ts";
import type { TailState } from "../engine/tail-state.ts";
import { emptyTailState } from "../engine/tail-state-format.ts";
import type { Clock } from "../lib/clock.ts";
import { isPicoError, PicoError } from "../lib/errors.ts";
import { PAGE_BYTES_MAX } from "../lib/limits.ts";
import { isJsonMime, mimeOf } from "../lib/mime.ts";
import type { ForkOrigin, Outcome, StreamSettings } from "../metadata/command.ts";
import type { Metadata } from "../metadata/metadata.ts";
import { type SessionTable, settle, unavailable } from "./session-table.ts";
import { matchesSettings } from "./settings-match.ts";
import type { StreamIds } from "./stream-ids.ts";
import type { CreateRequest, CreateResult, StreamInfo } from "./stream-service.ts";
import type { StreamSession } from "./stream-session.ts";

export interface StreamCreatorComponents {
  readonly clock: Clock;
  readonly metadata: Metadata;
  readonly engine: Engine;
  readonly table: SessionTable;
  readonly ids: StreamIds;
}

/** Everything that a create command and its first WAL entry need. */
interface Plan {
  readonly streamId: number;
  readonly name: string;
  readonly settings: StreamSettings;
  readonly isClosed: boolean;
  readonly fork: ForkOrigin | null;
  readonly records: readonly NewRecord[];
  /** Before its first entry. */
  readonly tail: TailState;
}

export class StreamCreator {
  readonly #clock: Clock;
  readonly #metadata: Metadata;
  readonly #engine: Engine;
  readonly #table: SessionTable;
  readonly #ids: StreamIds;

  constructor(components: StreamCreatorComponents) {
    this.#clock = components.clock;
    this.#metadata = components.metadata;
    this.#engine = components.engine;
    this.#table = components.table;
    this.#ids = components.ids;
  }

  async create(request: CreateRequest): Promise<CreateResult> {
    const existing = await this.#existing(request.name);
    if (existing !== null) return compare(request, existing);
    const plan = await this.#plan(request);
    const outcome = await this.#carryOut(plan);
    if (outcome.applied) return { isNew: true, info: created(plan, outcome.facts.startOffset ?? 0) };
    return this.#refused(request, outcome);
  }

  /** The session of the name, if the name is taken. */
  async #existing(name: string): Promise<StreamSession | null> {
    const entry = this.#metadata.view.streamByName(name);
    if (entry === null) return null;
    if (entry.isDeleted) throw nameKept(name);
    try {
      return await this.#table.ready(name);
    } catch (error) {
      if (isPicoError(error, "not_found")) return null;
      throw error;
    }
  }

  async #refused(request: CreateRequest, outcome: Outcome & { applied: false }): Promise<CreateResult> {
    if (outcome.code === "name_taken") {
      const existing = await this.#existing(request.name);
      if (existing !== null) return compare(request, existing);
      throw unavailable(`stream ${request.name} was removed while it was created`);
    }
    if (outcome.code === "fork_source" && request.fork !== null) {
      // The source was deleted or trimmed meanwhile: answered as if asked for now.
      await this.#divergence(await this.#source(request.fork.sourceName), request.fork);
      throw unavailable(`stream ${request.fork.sourceName} changed while it was forked`);
    }
    throw unavailable(`stream ${request.name} cannot be created now (${outcome.code})`);
  }

  async #plan(request: CreateRequest): Promise<Plan> {
    const { name, isClosed } = request;
    if (request.fork === null) {
      const { contentType, ttlSeconds, expiresAtMs } = request;
      if (contentType === null) throw new PicoError("bad_request", "a stream needs a content type", { what: "content type" });
      return {
        streamId: this.#ids.take(),
        name,
        isClosed,
        settings: { contentType, ttlSeconds, expiresAtMs },
        fork: null,
        records: request.records,
        tail: emptyTailState(),
      };
    }
    const source = await this.#source(request.fork.sourceName);
    const { offset, partial } = await this.#divergence(source, request.fork);
    const fork: ForkOrigin = {
      sourceId: source.streamId,
      sourceName: source.entry.name,
      offset,
      requestedOffset: request.fork.offset,
      requestedSubOffset: request.fork.subOffset,
    };
    const records = partial === null ? request.records : [{ key: null, headers: [], body: partial }, ...request.records];
    const lastTimestampMs = offset > source.entry.startOffset ? await this.#engine.timestampAt(source.entry, offset - 1) : 0;
    const tail = { ...emptyTailState(offset), lastTimestampMs };
    return { streamId: this.#ids.take(), name, isClosed, settings: forkSettings(request, source.entry.settings), fork, records, tail };
  }

  async #source(name: string): Promise<StreamSession> {
    const entry = this.#metadata.view.streamByName(name);
    if (entry?.isDeleted) throw sourceDeleted(name);
    try {
      return await this.#table.ready(name);
    } catch (error) {
      // Deleted while it was waited for.
      if (isPicoError(error, "gone")) throw sourceDeleted(name);
      throw error;
    }
  }

  /** The fork offset, and the part of the record there that becomes the fork's own first record. */
  async #divergence(
    source: StreamSession,
    fork: NonNullable<CreateRequest["fork"]>,
  ): Promise<{ readonly offset: number; readonly partial: Uint8Array | null }> {
    const tail = source.log.durableOffset;
    const anchor = fork.offset ?? tail;
    const { startOffset } = source.entry;
    if (anchor < startOffset || anchor > tail) {
      throw new PicoError("bad_request", `fork offset ${anchor} is not in the source, which holds ${startOffset} to ${tail}`, {
        what: "fork offset",
        start: startOffset,
        tail,
      });
    }
    if (fork.subOffset === 0) return { offset: anchor, partial: null };
    if (isJsonMime(source.mimeType)) {
      if (fork.subOffset > tail - anchor) throw overshoot(fork.subOffset, tail - anchor, "records");
      return { offset: anchor + fork.subOffset, partial: null };
    }
    const body = anchor === tail ? new Uint8Array(0) : await this.#bodyAt(source, anchor);
    if (fork.subOffset > body.length) throw overshoot(fork.subOffset, body.length, "bytes");
    if (fork.subOffset === body.length) return { offset: anchor + 1, partial: null };
    return { offset: anchor, partial: body.slice(0, fork.subOffset) };
  }

  async #bodyAt(source: StreamSession, offset: number): Promise<Uint8Array> {
    const page = await source.read({ name: source.entry.name, from: offset, recordsMax: 1, bytesMax: PAGE_BYTES_MAX });
    return page.slices[0]?.batch.record(offset).body ?? new Uint8Array(0);
  }

  /** Writes the first entry if there is one, then proposes; resolves with the outcome as applied here. */
  async #carryOut(plan: Plan): Promise<Outcome> {
    const { streamId, name, settings, isClosed, fork } = plan;
    const propose = () => this.#metadata.propose({ type: "create_stream", streamId, name, settings, isClosed, fork });
    if (plan.records.length === 0 && !isClosed) return settle(this.#clock, propose(), name);
    if (this.#metadata.isAnswerOverdue) throw unavailable("the database does not answer");
    // The upload of this entry waits until the create is decided, even if the request is gone.
    const sent = this.#write(plan).then(propose);
    this.#engine.holdUpload(
      streamId,
      sent.then((proposal) => proposal.outcome),
    );
    return settle(this.#clock, await sent, name);
  }

  /** Resolves when the first entry is durable. The session that opens later finds it in the log cache. */
  #write(plan: Plan): Promise<void> {
    const { streamId, records, isClosed } = plan;
    const tail = new TailFold(plan.tail);
    return new Promise((resolve, reject) => {
      const log = this.#engine.openLog(streamId, plan.tail);
      const timestampMs = Math.max(this.#clock.nowMs(), plan.tail.lastTimestampMs);
      try {
        this.#engine.append(log, tail, { records, timestampMs, producer: null, streamSeq: null, closes: isClosed }, (error) =>
          error === null ? resolve() : reject(error),
        );
      } finally {
        // Goes now where the append was refused, else with its entry, unless a session takes it over.
        this.#engine.releaseLog(log);
      }
    });
  }
}

/** The stream as it was created, even if its deadline has passed since. */
function created(plan: Plan, startOffset: number): StreamInfo {
  const { streamId, name, settings, isClosed, fork, tail, records } = plan;
  return { streamId, name, settings, startOffset, nextOffset: tail.nextOffset + records.length, isClosed, fork };
}

function compare(request: CreateRequest, existing: StreamSession): CreateResult {
  const info = existing.info();
  if (matchesSettings(request, info)) return { isNew: false, info };
  throw new PicoError("conflict", `stream ${request.name} exists with other settings (content type ${info.settings.contentType})`, {
    tail: info.nextOffset,
    contentType: info.settings.contentType,
  });
}

/** The table of Durable Streams 4.2: what the request names, else what the source has. */
function forkSettings(request: CreateRequest, source: StreamSettings): StreamSettings {
  if (request.contentType !== null && mimeOf(request.contentType) !== mimeOf(source.contentType)) {
    throw new PicoError("conflict", `a fork has its source's content type ${source.contentType}, not ${request.contentType}`, {
      contentType: source.contentType,
    });
  }
  const isLifetimeNamed = request.ttlSeconds !== null || request.expiresAtMs !== null;
  return {
    contentType: request.contentType ?? source.contentType,
    ttlSeconds: isLifetimeNamed ? request.ttlSeconds : source.ttlSeconds,
    expiresAtMs: isLifetimeNamed ? request.expiresAtMs : source.expiresAtMs,
  };
}

function nameKept(name: string): PicoError {
  return new PicoError("gone", `stream ${name} is deleted, and its forks still need its records: the name is taken until they go`, {
    name,
  });
}

function sourceDeleted(name: string): PicoError {
  return new PicoError("conflict", `stream ${name} is deleted: it cannot be forked any more`, { name });
}

function overshoot(subOffset: number, room: number, unit: string): PicoError {
  return new PicoError("bad_request", `fork sub-offset ${subOffset} is beyond the ${room} ${unit} behind the fork offset`, {
    what: "fork sub-offset",
  });
}

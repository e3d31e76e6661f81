/**
 * Restore: makes a database from the bucket alone, where the one of the node is lost.
 *
 * 1. The newest complete snapshot of the mirror and the log behind it go into an empty database, and the real
 *    metadata log loads and applies them. A damaged snapshot gives way to the one before.
 * 2. Registrations whose WAL is in the store and which the log does not know are registered again, so that the next
 *    start replays their WAL as it does any other.
 * 3. The restore registers itself, above every epoch that was ever seen, fences whoever still counts as alive, and
 *    raises the ids: none that was handed out since the last mirrored command is handed out again.
 * 4. The state is held against the store: marker, data objects, WAL.
 * 5. The new rows go into the mirror. From there on a process that goes on with the lost database meets them and
 *    stops.
 *
 * Invariants:
 * - Nothing is written to the bucket before everything was checked, and nothing of it is deleted.
 * - Every step can be repeated: a restore that was cut short leaves a longer log for the next, no more.
 */

import { listMarkers, readMarker } from "../engine/store-marker.ts";
import { decodeWalEntries } from "../engine/wal-entry.ts";
import { describeSegment } from "../engine/wal-segment.ts";
import type { WalStore } from "../engine/wal-store.ts";
import { inspectWal } from "../engine/wal-takeover.ts";
import type { Clock } from "../lib/clock.ts";
import { isPicoError, messageOf, PicoError } from "../lib/errors.ts";
import {
  FAILOVER_TIMEOUT_MS_DEFAULT,
  RESTORE_ITEMS_MAX,
  RESTORE_OBJECT_ID_GAP,
  RESTORE_STREAM_ID_GAP,
  RESTORE_TRIES_MAX,
  STREAM_IDS_PER_RESERVATION,
} from "../lib/limits.ts";
import type { Logger } from "../lib/log.ts";
import { type Random, randomHex } from "../lib/random.ts";
import { formatRegistration, type RegistrationName, sameRegistration } from "../lib/registration.ts";
import type { Command, Outcome } from "../metadata/command.ts";
import { COMMAND_VERSION, decodeBatch, encodeBatch, encodeCommand } from "../metadata/command-format.ts";
import { objectKey, type RegistrationEntry } from "../metadata/entries.ts";
import { MetadataLog } from "../metadata/metadata-log.ts";
import type { CommandOf } from "../metadata/outcome.ts";
import type { View } from "../metadata/view.ts";
import { Mirror } from "../mirror/mirror.ts";
import { mirrorPrefix } from "../mirror/mirror-object.ts";
import { type DamagedChunk, findMirror, type MirrorContents, readMirroredLog } from "../mirror/mirror-reader.ts";
import { mirroredRows, readSnapshotManifest } from "../mirror/snapshot-reader.ts";
import type { LogRow, SqlStore } from "../sql/sql-store.ts";
import { listAll, type ObjectStore } from "../storage/object-store.ts";

export interface RestoreOptions {
  readonly store: ObjectStore;
  readonly wal: WalStore;
  /** A database without a byte in it; what an earlier call made is gone then. */
  readonly openDatabase: () => Promise<SqlStore>;
  readonly clusterId: string;
  readonly nodeId: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Finishes although something is missing for good. */
  readonly isForced: boolean;
  readonly onProgress: (progress: RestoreProgress) => void;
}

export interface RestoreProgress {
  readonly step: "snapshot" | "log" | "wal" | "objects" | "mirror";
  /** Rows, rows, bytes, objects, nothing. */
  readonly done: number;
}

/** A stream that the restored state does not know, and of which the WAL has records. */
export interface LostStream {
  readonly streamId: number;
  readonly records: number;
}

export interface RestoreReport {
  readonly clusterIdentity: string;
  /** Of the snapshot that the log was put behind; 0: there was none, and all of the log. */
  readonly snapshotIndex: number;
  /** Last command that the mirror had, its time, and the hash of the state there, 16 hex digits. */
  readonly mirroredIndex: number;
  readonly mirroredAtMs: number;
  readonly stateHash: string;
  readonly streams: number;
  /** Registrations whose register command was lost, and whose WAL is there. */
  readonly takenBack: readonly string[];
  /** What the next start replays. */
  readonly walSegments: number;
  readonly walBytes: number;
  /** Some of the streams that were created after the last mirrored command; `lostStreamCount` of all. */
  readonly lostStreams: readonly LostStream[];
  readonly lostStreamCount: number;
  readonly objects: number;
  /** Objects in the store that the state does not know; `pico admin scrub` tells more. */
  readonly orphanCount: number;
  readonly orphanBytes: number;
  /** What is wrong, and was passed over. */
  readonly problems: readonly string[];
}

/**
 * Throws `settings` (fact `isStartup`) where the store has no mirror, `corrupt` where something is missing or damaged
 * (what `isForced` passes over says so), `unavailable` where another process goes on writing to the mirror, and what
 * store and database throw. The database is whole when this resolves, and not to be used otherwise.
 */
export async function restoreDatabase(options: RestoreOptions): Promise<RestoreReport> {
  for (let tries = 1; ; tries++) {
    const restore = new Restore(options);
    try {
      return await restore.run();
    } catch (error) {
      if (!(error instanceof OvertakenError)) throw error;
      if (tries < RESTORE_TRIES_MAX) continue;
      throw new PicoError(
        "unavailable",
        `another process writes to the mirror in ${options.store.description} while it is restored; stop the node that does, and restore again`,
        { retryAfterSeconds: 60 },
        error.cause,
      );
    } finally {
      await restore.close();
    }
  }
}

/** The mirror went on behind what was restored. */
class OvertakenError extends Error {}

interface Loaded {
  readonly sql: SqlStore;
  readonly metadata: MetadataLog;
  readonly snapshotIndex: number;
}

class Restore {
  readonly #options: RestoreOptions;
  readonly #problems: string[] = [];
  /** Problems that only `isForced` passes over. */
  readonly #losses: string[] = [];
  /** Streams that the restored rows create: ids of a block are given out in order. */
  readonly #createdIds = new Set<number>();
  #opened: SqlStore | null = null;
  #metadata: MetadataLog | null = null;

  constructor(options: RestoreOptions) {
    this.#options = options;
  }

  async run(): Promise<RestoreReport> {
    const { store, clusterId } = this.#options;
    const contents = await findMirror(store, clusterId);
    const { sql, metadata, snapshotIndex } = await this.#load(contents);
    const { index: mirroredIndex, rowSum } = metadata.stateHash();
    const mirroredAtMs = metadata.view.appliedAtMs;
    const streams = metadata.view.streamCount;
    await this.#checkMarker(sql, metadata);
    const takenBack = await this.#takeBack(sql, metadata);
    const wal = await this.#readWals(metadata);
    const objects = await this.#compareObjects(metadata);
    if (this.#losses.length > 0 && !this.#options.isForced) {
      throw new PicoError("corrupt", `not restored: ${this.#losses.join("; ")}. --force restores what there is`, {
        where: store.description,
      });
    }
    await this.#register(metadata, wal.lost, Math.max(wal.streamIdMax, 0), objects.objectIdMax);
    await this.#mirror(sql, metadata);
    return {
      clusterIdentity: metadata.clusterIdentity,
      snapshotIndex,
      mirroredIndex,
      mirroredAtMs,
      stateHash: rowSum.toString(16).padStart(16, "0"),
      streams,
      takenBack: takenBack.map(formatRegistration),
      walSegments: wal.segments,
      walBytes: wal.bytes,
      lostStreams: wal.lostStreams.slice(0, RESTORE_ITEMS_MAX),
      lostStreamCount: wal.lostStreams.length,
      objects: objects.found,
      orphanCount: objects.orphanCount,
      orphanBytes: objects.orphanBytes,
      problems: [...this.#problems, ...this.#losses],
    };
  }

  async close(): Promise<void> {
    await this.#metadata?.stop();
    await this.#opened?.close();
    this.#metadata = null;
    this.#opened = null;
  }

  async #load(contents: MirrorContents): Promise<Loaded> {
    const { store, clusterId } = this.#options;
    if (contents.chunks.length === 0 && contents.snapshots.length === 0) {
      throw new PicoError(
        "settings",
        `${store.description} has no mirror of a command log below ${mirrorPrefix(clusterId)}; name the node's own --storage and --cluster-id`,
        { isStartup: true },
      );
    }
    const isFromStart = contents.chunks[0]?.first === 1;
    const bases = isFromStart ? [...contents.snapshots, 0] : contents.snapshots;
    for (const index of bases) {
      try {
        return await this.#loadFrom(contents, index);
      } catch (error) {
        if (!isPicoError(error, "corrupt")) throw error;
        this.#problems.push(`${index === 0 ? "the log from its start" : `the snapshot at ${index}`} could not be used: ${error.message}`);
        await this.close();
      }
    }
    const why = this.#problems.length === 0 ? "no snapshot in it is complete" : this.#problems.join("; ");
    throw new PicoError("corrupt", `not restored: the mirror in ${store.description} is damaged: ${why}`, {
      where: mirrorPrefix(clusterId),
    });
  }

  /** Throws `corrupt` where snapshot and log do not fit together, or are damaged. */
  async #loadFrom(contents: MirrorContents, snapshotIndex: number): Promise<Loaded> {
    const { store, clusterId, clock, random, log, onProgress } = this.#options;
    const sql = await this.#options.openDatabase();
    this.#opened = sql;
    let identity = snapshotIndex === 0 ? null : await this.#importSnapshot(sql, snapshotIndex);
    let rows = 0;
    const from = Math.max(1, snapshotIndex);
    const end = await readMirroredLog(store, clusterId, contents.chunks, from, async (logRows, clusterIdentity) => {
      if (identity === null) await sql.open(clusterIdentity);
      identity ??= clusterIdentity;
      if (identity !== clusterIdentity) throw new PicoError("corrupt", `two databases were mirrored below ${mirrorPrefix(clusterId)}`, {});
      await sql.importPart({ snapshotRows: [], snapshotHead: null, logRows });
      this.#noteCreates(logRows);
      rows += logRows.length;
      onProgress({ step: "log", done: rows });
    });
    if (end.resumesAt !== null) {
      throw new PicoError(
        "corrupt",
        `the mirrored log breaks off at ${end.lastIndex} and goes on at ${end.resumesAt} (${reasonsOf(end.damage) || "objects between are missing"})`,
        { where: mirrorPrefix(clusterId) },
      );
    }
    if (end.lastIndex < from) throw new PicoError("corrupt", `the log has no row ${from}: ${reasonsOf(end.damage)}`, {});
    const metadata = await MetadataLog.open({
      store: sql,
      clock,
      random,
      logger: log,
      onFatal: (error) => log.error("the restore failed", { error }),
    });
    this.#metadata = metadata;
    // Only what no other chunk holds: a chunk that reads back damaged is written again by the node that finds it.
    const lostTail = end.damage.filter(({ first }) => first > end.lastIndex);
    if (lostTail.length > 0) this.#losses.push(`the last commands of the log cannot be read (${reasonsOf(lostTail)})`);
    return { sql, metadata, snapshotIndex };
  }

  #noteCreates(rows: readonly LogRow[]): void {
    for (const row of rows) {
      for (const command of decodeBatch(row.payload, `log row ${row.index}`).commands) {
        if (command.type === "create_stream") this.#createdIds.add(command.streamId);
      }
    }
  }

  /** Returns the cluster identity. */
  async #importSnapshot(sql: SqlStore, index: number): Promise<string> {
    const { store, clusterId, onProgress } = this.#options;
    const manifest = await readSnapshotManifest(store, clusterId, index);
    if (manifest === null) throw new PicoError("corrupt", `the snapshot at ${index} has lost its manifest`, {});
    await sql.open(manifest.clusterIdentity);
    let rows = 0;
    for await (const snapshotRows of mirroredRows(store, clusterId, manifest)) {
      await sql.importPart({ snapshotRows, snapshotHead: null, logRows: [] });
      rows += snapshotRows.length;
      onProgress({ step: "snapshot", done: rows });
    }
    await sql.importPart({ snapshotRows: [], snapshotHead: manifest.head, logRows: [] });
    return manifest.clusterIdentity;
  }

  /** What was deleted from the store was deleted on the word of a command that the mirror had: a higher marker is damage. */
  async #checkMarker(sql: SqlStore, { view, clusterIdentity }: MetadataLog): Promise<void> {
    const { store, clusterId } = this.#options;
    const newest = Math.max(0, ...(await listMarkers(store, clusterId)));
    if (newest === 0) return;
    const marker = await readMarker(store, clusterId, newest);
    if (marker === null) return;
    const rowId = newest <= view.appliedIndex ? await sql.rowIdAt(newest) : null;
    const isOurs = marker.clusterIdentity === clusterIdentity && (rowId === null || rowId === marker.rowId);
    if (newest <= view.appliedIndex && isOurs) return;
    throw new PicoError(
      "corrupt",
      `not restored: a marker in ${store.description} says that the log of ${marker.clusterIdentity} once reached ${newest}, and the mirror of ${clusterIdentity} ends at ${view.appliedIndex}: ` +
        "objects of the mirror are missing or another cluster's; bring them back (older versions of a bucket have them) and restore again",
      { where: mirrorPrefix(clusterId), marker: newest, index: view.appliedIndex },
    );
  }

  /** Registers those whose WAL is there and whose register command is not. */
  async #takeBack(sql: SqlStore, metadata: MetadataLog): Promise<readonly RegistrationName[]> {
    const { wal, random } = this.#options;
    const found = [...(await wal.registrations())];
    const unknown = found.filter((name) => metadata.view.registration(name) === null);
    unknown.sort((left, right) => left.nodeId - right.nodeId || left.nodeEpoch - right.nodeEpoch);
    for (const name of unknown) {
      const replaces = metadata.view.node(name.nodeId)?.lastEpoch ?? null;
      if (replaces !== null && name.nodeEpoch <= replaces) {
        throw new PicoError(
          "corrupt",
          `the WAL of ${formatRegistration(name)} is in ${wal.description}, and the log knows a later life but not this one`,
          {},
        );
      }
      const payload = encodeBatch([encodeCommand(this.#registerCommand(metadata, name, replaces))]);
      const fences = replaces === null ? [] : [{ victim: { nodeId: name.nodeId, nodeEpoch: replaces }, counter: null }];
      await sql.insertBatch({ rowId: randomHex(random, 16), proposer: name, batch: 0, payload, fences });
      await metadata.catchUp();
    }
    return unknown;
  }

  #registerCommand({ view }: MetadataLog, node: RegistrationName, replaces: number | null): CommandOf<"register"> {
    const { wal } = this.#options;
    return {
      type: "register",
      node,
      addresses: { pico: null, durableStreams: null, admin: null },
      wal: { kind: wal.kind, description: wal.description },
      slots: view.node(node.nodeId)?.slots ?? 1,
      failoverTimeoutMs: FAILOVER_TIMEOUT_MS_DEFAULT,
      commandVersion: COMMAND_VERSION,
      replaces,
    };
  }

  /** Reads what the next start will replay, and finds the streams in it that nobody knows. */
  async #readWals({ view }: MetadataLog): Promise<WalFindings> {
    const { wal, clock, random, onProgress } = this.#options;
    const found: WalFindings = { segments: 0, bytes: 0, streamIdMax: 0, lostStreams: [], lost: [] };
    const present = await wal.registrations();
    const records = new Map<number, number>();
    for (const entry of view.registrations()) {
      if (entry.state === "ended") continue;
      const isHere = present.some((name) => sameRegistration(name, entry.name));
      // In a bucket nothing of it means that nothing was written, or all of it is uploaded.
      if (!isHere && (entry.wal.kind === "local" || wal.kind === "local")) {
        found.lost.push(entry);
        this.#losses.push(
          `what ${formatRegistration(entry.name)} had acknowledged and not uploaded was in the WAL ${entry.wal.description}, and ${wal.description} has nothing of it`,
        );
        continue;
      }
      const position = entry.fencedNumber ?? entry.committedNumber;
      const taken = await inspectWal({ store: wal, clock, random, registration: entry.name, position });
      for await (const { number, bytes, segment } of taken.segments()) {
        found.segments += 1;
        found.bytes += bytes.length;
        onProgress({ step: "wal", done: found.bytes });
        for (const { streamId, batch } of decodeWalEntries(segment.body, describeSegment(entry.name, number))) {
          found.streamIdMax = Math.max(found.streamIdMax, streamId);
          if (view.streamById(streamId) === null) records.set(streamId, (records.get(streamId) ?? 0) + (batch?.count ?? 0));
        }
      }
    }
    for (const { streamId } of view.streams()) this.#createdIds.add(streamId);
    const isDeleted = deletedIds(view, this.#createdIds);
    found.lostStreams = [...records]
      .filter(([streamId]) => !isDeleted(streamId))
      .map(([streamId, count]) => ({ streamId, records: count }))
      .sort((left, right) => left.streamId - right.streamId);
    return found;
  }

  /** Live objects must be in the store, whole by their size. */
  async #compareObjects({ view }: MetadataLog): Promise<{ found: number; orphanCount: number; orphanBytes: number; objectIdMax: number }> {
    const { store, clusterId, onProgress } = this.#options;
    const missing = new Map<string, number>();
    for (const entry of view.objects()) if (entry.state === "live") missing.set(objectKey(clusterId, entry), entry.summary?.sizeBytes ?? 0);
    const wanted = missing.size;
    const result = { found: 0, orphanCount: 0, orphanBytes: 0, objectIdMax: 0 };
    let seen = 0;
    for await (const { key, sizeBytes } of listAll(store, `${clusterId}/data/`)) {
      onProgress({ step: "objects", done: ++seen });
      const objectId = Number(key.slice(key.lastIndexOf("/") + 1));
      if (!Number.isSafeInteger(objectId)) continue;
      result.objectIdMax = Math.max(result.objectIdMax, objectId);
      if (missing.get(key) === sizeBytes) missing.delete(key);
      const entry = view.object(objectId);
      if (entry !== null && objectKey(clusterId, entry) === key) continue;
      result.orphanCount += 1;
      result.orphanBytes += sizeBytes;
    }
    result.found = wanted - missing.size;
    if (missing.size > 0) {
      const named = [...missing.keys()].slice(0, RESTORE_ITEMS_MAX).join(", ");
      this.#losses.push(`${missing.size} data objects that the state names are missing or cut short in ${store.description}: ${named}`);
    }
    return result;
  }

  async #register(metadata: MetadataLog, lost: readonly RegistrationEntry[], streamIdMax: number, objectIdMax: number): Promise<void> {
    const { nodeId, clock } = this.#options;
    const replaces = metadata.view.node(nodeId)?.lastEpoch ?? null;
    const self = { nodeId, nodeEpoch: Math.max(clock.nowMs(), (replaces ?? -1) + 1) };
    assertApplied("register", await metadata.register(this.#registerCommand(metadata, self, replaces), null));
    for (const { name, state } of [...metadata.view.registrations()]) {
      if (state !== "live" || sameRegistration(name, self)) continue;
      // Its database is gone: whoever still runs on it is no part of this cluster any more.
      assertApplied("fence", await metadata.propose({ type: "fence", victim: name }, [{ victim: name, counter: null }]).outcome);
    }
    for (const { name, committedNumber } of lost) {
      await this.#propose(metadata, { type: "end", victim: name, lastNumber: committedNumber, heir: null });
    }
    const { nextStreamId, nextObjectId } = metadata.nextIds;
    await this.#propose(metadata, {
      type: "raise_ids",
      nextStreamId: Math.max(nextStreamId, streamIdMax + 1) + RESTORE_STREAM_ID_GAP,
      nextObjectId: Math.max(nextObjectId, objectIdMax + 1) + RESTORE_OBJECT_ID_GAP,
    });
    assertApplied("end", await metadata.end(0));
  }

  async #propose(metadata: MetadataLog, command: Command): Promise<void> {
    assertApplied(command.type, await metadata.propose(command).outcome);
  }

  /** The first to write behind the mirrored log is the one who goes on with it. */
  async #mirror(sql: SqlStore, metadata: MetadataLog): Promise<void> {
    const { store, clusterId, clock, log, onProgress } = this.#options;
    onProgress({ step: "mirror", done: 0 });
    const mirror = new Mirror({ store, sql, metadata, clusterId, clock, log, onFatal: () => undefined });
    try {
      if (await mirror.cover(metadata.view.appliedIndex)) return;
    } catch (error) {
      if (isPicoError(error, "corrupt")) throw new OvertakenError(messageOf(error), { cause: error });
      throw error;
    }
    throw new PicoError("storage_failed", `the restored log could not be mirrored to ${store.description}; try again`, {});
  }
}

interface WalFindings {
  segments: number;
  bytes: number;
  streamIdMax: number;
  lostStreams: readonly LostStream[];
  /** Registrations whose WAL was on a disk that is not here. */
  readonly lost: RegistrationEntry[];
}

function reasonsOf(damage: readonly DamagedChunk[]): string {
  return damage.map(({ reason }) => reason).join("; ");
}

/**
 * Tells, of an id that the state does not know, whether its stream was deleted. A registration gives the ids of a block
 * out in order, so what is above all that the log knows of the block was created later than the log goes.
 */
function deletedIds(view: View, created: ReadonlySet<number>): (streamId: number) => boolean {
  const firsts = [...view.registrations()].flatMap(({ streamIdBlocks }) => streamIdBlocks);
  const blockOf = (streamId: number) => firsts.find((first) => streamId >= first && streamId < first + STREAM_IDS_PER_RESERVATION) ?? 0;
  const highest = new Map<number, number>();
  for (const streamId of created) highest.set(blockOf(streamId), Math.max(highest.get(blockOf(streamId)) ?? 0, streamId));
  return (streamId) => streamId <= (highest.get(blockOf(streamId)) ?? 0);
}

function assertApplied(what: string, outcome: Outcome): void {
  if (!outcome.applied) throw new PicoError("internal", `the ${what} of the restore was refused (${outcome.code})`);
}

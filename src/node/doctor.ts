/**
 * What may keep a node from starting or running well, found out before it starts or while it runs, without changing
 * anything: no file is made, nothing of a running node is locked or asked for more than an answer. In a bucket a small
 * object is created and deleted, since there is no other way to know whether that works.
 *
 * - `doctor-places.ts`: folders, free space, file systems, and whether a node runs on them.
 * - `doctor-buckets.ts`: buckets, credentials, and the store's clock.
 * - `doctor-database.ts`: the metadata.
 * - `doctor-stores.ts`: whether the stores allow a new one, where there is none.
 * - `doctor-ports.ts`: the listeners' addresses.
 * - `doctor-system.ts`: open files, and the clock.
 */
import { join } from "node:path";
import type { Clock } from "../lib/clock.ts";
import { examineBuckets } from "./doctor-buckets.ts";
import { examineDatabase } from "./doctor-database.ts";
import { examinePlaces, findHolder, type LockHolder } from "./doctor-places.ts";
import { examinePorts } from "./doctor-ports.ts";
import { examineMissing } from "./doctor-stores.ts";
import { examineClock, examineOpenFiles, readClocks } from "./doctor-system.ts";
import type { Settings } from "./settings.ts";

export interface Finding {
  /** `fail`: a node would not start, or soon stop. `warn`: it runs, and something is not as it should be. */
  readonly level: "ok" | "warn" | "fail";
  /** What was looked at, in a word or three. */
  readonly what: string;
  /** How it is; where it is not well, what to do. */
  readonly detail: string;
}

/** Findings as they come. `settings`: of the node that is to run, or runs. */
export async function* examine(settings: Settings, clock: Clock): AsyncGenerator<Finding, void, undefined> {
  const before = readClocks(clock);
  const holder = await holderOf(settings);
  yield* examinePlaces(settings, holder);
  yield* examineBuckets(settings, clock);
  const { findings, lastWriteMs, lack } = await examineDatabase(settings.metadata, clock);
  const misfit = lack === null ? null : await examineMissing(lack, settings, clock);
  if (misfit === null) yield* findings;
  else yield misfit;
  yield* examinePorts(settings, holder?.isAlive === true);
  yield await examineOpenFiles();
  yield examineClock(before, readClocks(clock), lastWriteMs);
}

/** A node locks the folder of its WAL, or that of its id beside the database (`node-id-lock.ts`). */
function holderOf({ metadata, nodeId, wal }: Settings): Promise<LockHolder | null> {
  if (wal.kind === "local") return findHolder(wal.directory);
  return metadata.kind === "sqlite-file" ? findHolder(join(`${metadata.path}.nodes`, String(nodeId))) : Promise.resolve(null);
}

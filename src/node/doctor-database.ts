/** The metadata: whether it is a database of ours, of a version that this program reads, and whole. */
import fs from "node:fs/promises";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { KIB } from "../lib/limits.ts";
import { systemRandom } from "../lib/random.ts";
import { openPostgresStore } from "../sql/postgres-opener.ts";
import type { PostgresPlace } from "../sql/postgres-place.ts";
import { POSTGRES_SCHEMA_VERSION } from "../sql/postgres-schema.ts";
import { inspectSqliteFile } from "../sql/sqlite-inspection.ts";
import { SQLITE_SCHEMA_VERSION } from "../sql/sqlite-schema.ts";
import { isAbsence } from "../storage/file-error.ts";
import type { Finding } from "./doctor.ts";
import type { MetadataSettings } from "./settings.ts";

const WHAT = "database";
const RESTORE = "restore a backup (pico backup makes one), and keep what is there";

export interface DatabaseExamination {
  readonly findings: readonly Finding[];
  /** Of the newest change, milliseconds since 1970; null where it is not known. */
  readonly lastWriteMs: number | null;
  /** Where a start would begin with nothing: what is known, for a message, and whether a file is in the way of another database. Null elsewhere. */
  readonly lack: { readonly what: string; readonly isFileThere: boolean } | null;
}

export async function examineDatabase(metadata: MetadataSettings, clock: Clock): Promise<DatabaseExamination> {
  if (metadata.kind === "postgres") return examinePostgres(metadata.place, clock);
  if (metadata.kind === "sqlite-memory") {
    const detail = "in memory: gone when the node ends";
    return { ...only({ level: "warn", what: WHAT, detail }), lack: { what: "the database is to be in memory", isFileThere: false } };
  }
  const { path } = metadata;
  try {
    const stats = await fs.stat(path);
    if (stats.isFile() && stats.size === 0) return missing(path);
    if (!stats.isFile()) return only(fail(`${path} is no file; name another one with --meta-url, or move it away`));
  } catch (error) {
    if (isAbsence(error)) return missing(path);
    return only(fail(`${path} cannot be looked at: ${messageOf(error)}; run as the user of the node`));
  }
  return inspect(path);
}

async function examinePostgres(place: PostgresPlace, clock: Clock): Promise<DatabaseExamination> {
  const warnings: string[] = [];
  const store = await openPostgresStore({ place, clock, random: systemRandom, onWarning: (warning) => warnings.push(warning) });
  try {
    const version = await store.schemaVersion();
    if (version !== null && version > POSTGRES_SCHEMA_VERSION)
      return only(fail(laterSchema(store.description, version, POSTGRES_SCHEMA_VERSION)));
    const detail = version === null ? "answers, and has no cluster yet" : `answers, schema version ${version}`;
    const finding: Finding = { level: "ok", what: WHAT, detail: `${store.description} ${detail}` };
    const doubts = warnings.map((warning): Finding => ({ level: "warn", what: WHAT, detail: warning }));
    const lack = version === null ? { what: `the database ${store.description} is empty`, isFileThere: false } : null;
    return { findings: [finding, ...doubts], lastWriteMs: null, lack };
  } catch (error) {
    return only(fail(messageOf(error)));
  } finally {
    await store.close();
  }
}

function laterSchema(where: string, version: number, versionMax: number): string {
  return `${where} has schema version ${version}, this program reads up to ${versionMax}; use a later program`;
}

function missing(path: string): DatabaseExamination {
  const finding: Finding = { level: "ok", what: WHAT, detail: `${path} is not there yet and will be made` };
  return { ...only(finding), lack: { what: `there is no database at ${path}`, isFileThere: false } };
}

function inspect(path: string): DatabaseExamination {
  let found: ReturnType<typeof inspectSqliteFile>;
  try {
    found = inspectSqliteFile(path);
  } catch (error) {
    return only(fail(`${path} cannot be read: ${messageOf(error)}; run as the user of the node; if it is damaged, ${RESTORE}`));
  }
  if (found === null) {
    return only({
      level: "warn",
      what: WHAT,
      detail: `${path} was not looked at: its -wal file lies beside it without an -shm file, which only a start of the node should make`,
    });
  }
  const { sizeBytes, schemaVersion, isEmpty, lastWriteMs, damage } = found;
  if (schemaVersion === null)
    return only(fail(`${path} is a database, but none of pico; name the node's own with --data-dir or --meta-url`));
  if (schemaVersion > SQLITE_SCHEMA_VERSION) {
    return only(fail(laterSchema(path, schemaVersion, SQLITE_SCHEMA_VERSION)));
  }
  if (damage !== null && damage !== "") return only(fail(`${path} is damaged: ${damage}; ${RESTORE}`));
  const checked = damage === null ? "too large to be checked as a whole" : "its pages hold together";
  const detail = `${path}: schema version ${schemaVersion}, ${Math.ceil(sizeBytes / KIB)} KiB, ${checked}`;
  const lack = isEmpty ? { what: `the database at ${path} is empty`, isFileThere: true } : null;
  return { findings: [{ level: "ok", what: WHAT, detail }], lastWriteMs, lack };
}

function fail(detail: string): Finding {
  return { level: "fail", what: WHAT, detail };
}

function only(finding: Finding): DatabaseExamination {
  return { findings: [finding], lastWriteMs: null, lack: null };
}

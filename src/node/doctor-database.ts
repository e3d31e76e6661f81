/** The metadata: whether it is a database of ours, of a version that this program reads, and whole. */
import fs from "node:fs/promises";
import { messageOf } from "../lib/errors.ts";
import { KIB } from "../lib/limits.ts";
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

export async function examineDatabase(metadata: MetadataSettings): Promise<DatabaseExamination> {
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
    return only(
      fail(`${path} has schema version ${schemaVersion}, this program reads up to ${SQLITE_SCHEMA_VERSION}; use a later program`),
    );
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

/**
 * Bucket URIs of `--storage` and `--wal`: `<id>@<scheme>://<path>[?name=value&...]`.
 *
 * The id tells buckets apart and is a 16-bit signed number; with the scheme `s3` it may be left out. Parameters are taken as written (no percent
 * decoding), the first of a name wins, unknown names are ignored.
 */
import { PicoError } from "../lib/errors.ts";
import {
  BACKLOG_BYTES_DEFAULT,
  MIB,
  POSTGRES_CONNECTIONS_MAX,
  SEGMENT_BYTES_DEFAULT,
  SEGMENT_BYTES_MAX,
  SEGMENT_BYTES_POSTGRES,
  SEGMENTS_IN_FLIGHT_LOCAL,
  SEGMENTS_IN_FLIGHT_OBJECT,
  SEGMENTS_IN_FLIGHT_POSTGRES,
} from "../lib/limits.ts";

export type BucketScheme = "file" | "mem" | "s3";

export interface BucketUri {
  /** -32768 to 32767. */
  readonly id: number;
  readonly scheme: BucketScheme;
  /** `file`: a directory, relative or absolute. `mem`: a label. `s3`: bucket and prefix. Never empty. */
  readonly path: string;
  readonly parameters: ReadonlyMap<string, string>;
}

/** How a WAL collects and writes; taken from the parameters of its URI. */
export interface WalParameters {
  /** How long an idle WAL waits for company before it writes, in ms. @default 0 */
  readonly lingerMs: number;
  /** A batch seals at this size, in bytes; one entry always fits. @default 8388608, 1048576 in Postgres */
  readonly batchBytesMax: number;
  /** Segments being written at once. @default 2 on the local disk, 16 in an object store, 4 in Postgres */
  readonly inFlightMax: number;
  /** Entry bytes not yet uploaded; beyond, appends answer `unavailable`. @default 268435456 */
  readonly backlogBytesMax: number;
}

export const STORAGE_ID_DEFAULT = -2;
export const BUCKET_ID_MIN = -32768;
const BUCKET_ID_MAX = 32767;
const SCHEMES: readonly BucketScheme[] = ["file", "mem", "s3"];

/** A linger saves store requests; beyond this clients give up. */
const LINGER_MS_MAX = 60_000;
/** A batch that is all but full still takes one maximal entry into its segment. */
const BATCH_BYTES_MAX = SEGMENT_BYTES_MAX / 2;
/** Connections that one WAL may hold to an object store. */
const IN_FLIGHT_MAX = 256;
/** Of a WAL in Postgres: what reads and trims beside the segments in flight. */
export const CONNECTIONS_BESIDE = 2;
/** The backlog is in memory, and is replayed after a crash. */
const BACKLOG_BYTES_MAX = 64 * 1024 * MIB;

/** Throws `settings`, naming `flag`, for a text that is no bucket URI. `idDefault`: where it may be left out, and is. */
export function parseBucketUri(text: string, flag: string, idDefault = STORAGE_ID_DEFAULT): BucketUri {
  const shown = hideCredentials(text);
  const form = /^(?:([^@:/?]*)@)?([^@:/?]*):\/\/([^?]*)(?:\?(.*))?$/s.exec(text);
  const isWithoutId = form?.[1] === undefined && form?.[2] === "s3";
  if (form === null || (form[1] === undefined && !isWithoutId)) {
    throw refuse(flag, shown, "is no bucket URI; write ID@SCHEME://PATH, for example 1@file:///var/lib/pico/objects, or s3://BUCKET");
  }
  const [, idText = String(idDefault), scheme = "", path = "", query = ""] = form;

  const id = assertBucketId(/^[+-]?\d{1,6}$/.test(idText) ? Number(idText) : Number.NaN, flag, shown);
  if (!isScheme(scheme)) throw refuse(flag, shown, `has the unknown scheme ${JSON.stringify(scheme)}; use file, s3 or mem`);
  if (path === "") throw refuse(flag, shown, scheme === "file" ? "names no directory" : "has nothing behind ://");
  if (path.includes("\0")) throw refuse(flag, shown, "has a zero byte in its path");
  return { id, scheme, path, parameters: parseParameters(query) };
}

/** Throws `settings`. `shown`: what it is of, without secrets. */
export function assertBucketId(id: number, flag: string, shown = String(id)): number {
  if (id >= BUCKET_ID_MIN && id <= BUCKET_ID_MAX) return id;
  throw refuse(flag, shown, `has an id that is none; give a whole number from ${BUCKET_ID_MIN} to ${BUCKET_ID_MAX}`);
}

/**
 * Values that are not plain digits are ignored in favour of the default, values below the least one count
 * as that. Throws `settings`, naming `flag`, for one above the greatest.
 */
export function readWalParameters(
  uri: Pick<BucketUri, "parameters">,
  medium: "local" | "object" | "postgres",
  flag: string,
): WalParameters {
  const read = (name: string, min: number, max: number): number | null => {
    const text = uri.parameters.get(name);
    if (text === undefined || !/^\d+$/.test(text)) return null;
    if (Number(text) > max) throw refuse(flag, text, `is too much for the parameter ${name}; give at most ${max}`);
    return Math.max(Number(text), min);
  };
  const inFlight = {
    local: () => SEGMENTS_IN_FLIGHT_LOCAL,
    object: () => read("maxInflightUploadCount", 1, IN_FLIGHT_MAX) ?? SEGMENTS_IN_FLIGHT_OBJECT,
    postgres: () => read("maxInflight", 1, POSTGRES_CONNECTIONS_MAX - CONNECTIONS_BESIDE) ?? SEGMENTS_IN_FLIGHT_POSTGRES,
  };
  return {
    lingerMs: read("linger", 0, LINGER_MS_MAX) ?? read("batchInterval", 0, LINGER_MS_MAX) ?? 0,
    batchBytesMax: read("maxBytesInBatch", 1, BATCH_BYTES_MAX) ?? (medium === "postgres" ? SEGMENT_BYTES_POSTGRES : SEGMENT_BYTES_DEFAULT),
    inFlightMax: inFlight[medium](),
    backlogBytesMax: read("maxUnflushedBytes", 1, BACKLOG_BYTES_MAX) ?? BACKLOG_BYTES_DEFAULT,
  };
}

/**
 * For messages and logs. Of a bucket or a file what stands between `://` and the last `@` may be a password, and the
 * parameters may have one. Of all else with a `:` or an `@` the scheme alone is shown: in a URL of a database whose host
 * was forgotten, or whose `@` is not encoded, a password may stand anywhere.
 */
export function hideCredentials(uri: string): string {
  if (IS_SHOWN.test(uri)) return uri.replace(/:\/\/.*@/s, "://***@").replace(/\?.+$/s, "?***");
  return /[:@]/.test(uri) ? `${SCHEME.exec(uri)?.[0] ?? ""}***` : uri;
}

/** A URL of a database behind one of these schemes is a mistake that has its password all the same. */
const IS_SHOWN = /^\s*(?:[^@:/?]*@)?(?:file|mem|s3|sqlite|https?):(?!.*postgres(?:ql)?:)/is;
const SCHEME = /^\s*(?:[+-]?\d{1,6}@)?[a-z][a-z0-9+.-]*:\/\//i;

function parseParameters(query: string): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>();
  for (const pair of query.split("&")) {
    if (pair === "") continue;
    const at = pair.indexOf("=");
    const name = at < 0 ? pair : pair.slice(0, at);
    if (!parameters.has(name)) parameters.set(name, at < 0 ? "" : pair.slice(at + 1));
  }
  return parameters;
}

function isScheme(text: string): text is BucketScheme {
  return (SCHEMES as readonly string[]).includes(text);
}

function refuse(flag: string, shown: string, what: string): PicoError {
  return new PicoError("settings", `${flag} ${JSON.stringify(shown)} ${what}`, { flag, isStartup: true });
}

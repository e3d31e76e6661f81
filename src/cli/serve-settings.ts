/**
 * From flags and environment to the settings of a node. What can be refused without touching the machine is refused
 * here, before anything is opened.
 */
import { join, resolve } from "node:path";
import { PicoError } from "../lib/errors.ts";
import {
  BLOCK_CACHE_BYTES_DEFAULT,
  LOG_CACHE_BYTES_DEFAULT,
  LONG_POLL_SECONDS_DEFAULT,
  MIB,
  OFFSET_MAX,
  PAGE_BYTES_DEFAULT,
  PAGE_BYTES_MAX,
  REQUEST_BYTES_DEFAULT,
  REQUEST_BYTES_MAX,
  SCRUB_INTERVAL_SECONDS_DEFAULT,
  SCRUB_INTERVAL_SECONDS_MAX,
  SSE_SECONDS_DEFAULT,
  STOP_TIMEOUT_SECONDS_DEFAULT,
  UPLOAD_BYTES_DEFAULT,
  UPLOAD_INTERVAL_MS_DEFAULT,
} from "../lib/limits.ts";
import { LOG_FORMATS, LOG_LEVELS } from "../lib/log.ts";
import { type BucketUri, hideCredentials, parseBucketUri, STORAGE_ID_DEFAULT } from "../node/bucket-uri.ts";
import { isPostgresUrl, postgresPlaceFromUrl, postgresWalFromUri } from "../node/postgres-uri.ts";
import {
  assertPlacesDiffer,
  formatListenAddress,
  type ListenAddress,
  type MetadataSettings,
  type Settings,
  type StoredPlaces,
  type StreamListenerSettings,
  storageFromUri,
  type WalSettings,
  walBesideStorage,
  walFromUri,
  walIdBeside,
} from "../node/settings.ts";
import {
  assertBindAllowed,
  type FlagValues,
  type GivenText,
  parseAdvertisedUrl,
  parseHost,
  parseListenAddress,
  parseOrigin,
  refuseValue,
} from "./flag-values.ts";

const NODE_ID_MIN = -(2 ** 31);
const NODE_ID_MAX = 2 ** 31 - 1;
const ACCEPT_QUEUE_MAX = 65_535;
const SECONDS_MAX = 24 * 3600;
const INTERVAL_MS_MAX = SECONDS_MAX * 1000;
const CACHE_BYTES_MAX = 1024 * 1024 * MIB;
/** One segment of an object's key. */
const CLUSTER_ID = /^(?!\.{1,2}$)[A-Za-z0-9._-]{1,64}$/;

/** Throws `settings`. Relative paths are taken from `workingDirectory`. */
export function readServeSettings(values: FlagValues, workingDirectory: string): Settings {
  const listeners = readListeners(values);
  const places = readStoredPlaces(values, workingDirectory);
  const { wal } = places;
  const uploadInterval = values.number("--wal-upload-interval-ms", 0, INTERVAL_MS_MAX) ?? UPLOAD_INTERVAL_MS_DEFAULT;
  const uploadBytes = values.number("--wal-upload-threshold", 1, CACHE_BYTES_MAX) ?? UPLOAD_BYTES_DEFAULT;
  const allowedHosts = values.list("--allowed-host").map(parseHost);
  return {
    nodeId: readNodeId(values),
    nodeEpoch: values.number("--node-epoch", 0, OFFSET_MAX),
    ...places,
    isMirrored: readMirrored(values, places),
    ...listeners,
    streamOrigins: { allowedOrigins: values.list("--cors-origin").map(parseOrigin), allowedHosts },
    adminOrigins: { allowedOrigins: values.list("--admin-cors-origin").map(parseOrigin), allowedHosts },
    acceptQueueMax: values.number("--backlog", 1, ACCEPT_QUEUE_MAX) ?? 1024,
    longPollSeconds: values.number("--long-poll-timeout-sec", 0, SECONDS_MAX) ?? LONG_POLL_SECONDS_DEFAULT,
    sseSeconds: values.number("--sse-max-duration-sec", 1, SECONDS_MAX) ?? SSE_SECONDS_DEFAULT,
    pageBytesDefault: values.numberOrDefault("--max-chunk-size", PAGE_BYTES_MAX, PAGE_BYTES_DEFAULT),
    requestBytesMax: values.numberOrDefault("--max-request-size", REQUEST_BYTES_MAX, REQUEST_BYTES_DEFAULT),
    logCacheBytes: values.number("--wal-cache-size", 0, CACHE_BYTES_MAX) ?? LOG_CACHE_BYTES_DEFAULT,
    blockCacheBytes: values.number("--block-cache-size", 0, CACHE_BYTES_MAX) ?? BLOCK_CACHE_BYTES_DEFAULT,
    // An upload must end before the backlog is full, or appends wait for it.
    uploadBytes: Math.min(uploadBytes, Math.max(1, Math.floor((wal.parameters.backlogBytesMax * 2) / 5))),
    uploadIntervalMs: uploadInterval === 0 ? null : uploadInterval,
    scrubIntervalSeconds: values.number("--scrub-interval-sec", 0, SCRUB_INTERVAL_SECONDS_MAX) ?? SCRUB_INTERVAL_SECONDS_DEFAULT,
    shutdownDrainSeconds: values.number("--shutdown-drain-sec", 0, SECONDS_MAX) ?? 0,
    stopTimeoutSeconds: values.number("--stop-timeout-sec", 0, SECONDS_MAX) ?? STOP_TIMEOUT_SECONDS_DEFAULT,
    logFormat: values.word("--log-format", LOG_FORMATS),
    logLevel: values.word("--log-level", LOG_LEVELS) ?? "info",
  };
}

/** Where a node with these flags keeps its state. Throws `settings`. */
export function readStoredPlaces(values: FlagValues, workingDirectory: string): StoredPlaces {
  const dataDirectory = resolve(workingDirectory, values.text("--data-dir")?.text ?? "data");
  return {
    clusterId: readClusterId(values),
    dataDirectory,
    metadata: readMetadata(values.text("--meta-url"), dataDirectory, workingDirectory),
    ...readBuckets(values, dataDirectory, workingDirectory),
  };
}

/** Whether a store is lost together with the machine, as a rule, so that a mirror in it is no second copy. */
const IS_LOST_WITH_MACHINE: Readonly<Record<StoredPlaces["storage"]["kind"], boolean>> = { file: true, memory: true, s3: false };

function readMirrored(values: FlagValues, { storage, metadata }: StoredPlaces): boolean {
  const word = values.word("--mirror", ["auto", "on", "off"]) ?? "auto";
  return word === "auto" ? !IS_LOST_WITH_MACHINE[storage.kind] && metadata.kind === "sqlite-file" : word === "on";
}

/** Throws `settings`. */
export function readNodeId(values: FlagValues): number {
  return values.number("--node-id", NODE_ID_MIN, NODE_ID_MAX) ?? 1;
}

function readClusterId(values: FlagValues): string {
  const given = values.text("--cluster-id");
  if (given === null) return "picomq";
  if (!CLUSTER_ID.test(given.text)) throw refuseValue(given, "is no cluster name; use 1 to 64 of A-Z a-z 0-9 . _ -");
  return given.text;
}

function readListeners(values: FlagValues): Pick<Settings, "pico" | "durableStreams" | "admin"> {
  const isRemoteAllowed = values.isOn("--insecure-allow-remote");
  const taken = new Map<string, string>();
  const bind = (flag: string, defaultText: string): ListenAddress => {
    const given = values.text(flag);
    const listen = parseListenAddress(given ?? { text: defaultText, origin: flag });
    assertBindAllowed(given?.origin ?? flag, listen, isRemoteAllowed);
    const other = taken.get(formatListenAddress(listen));
    if (other !== undefined && listen.port !== 0) {
      throw new PicoError(
        "settings",
        `${flag} and ${other} are both ${formatListenAddress(listen)}; give each listener a port of its own`,
        { flag },
      );
    }
    taken.set(formatListenAddress(listen), flag);
    return listen;
  };
  const advertised = (flag: string): string | null => {
    const given = values.text(flag);
    return given === null ? null : parseAdvertisedUrl(given);
  };

  const main: StreamListenerSettings = { listen: bind("--listen", "127.0.0.1:4437"), advertisedUrl: advertised("--http-address") };
  const isDurableStreamsMain = values.word("--protocol", ["pico", "ds"]) === "ds";
  const hasSecond = !isDurableStreamsMain && !values.isOn("--no-ds");
  const second = hasSecond ? { listen: bind("--ds-listen", "127.0.0.1:4438"), advertisedUrl: advertised("--ds-http-address") } : null;
  return {
    pico: isDurableStreamsMain ? null : main,
    durableStreams: isDurableStreamsMain ? main : second,
    admin: values.isOn("--no-admin") ? null : { listen: bind("--admin-listen", "127.0.0.1:9090") },
  };
}

function readMetadata(given: GivenText | null, dataDirectory: string, workingDirectory: string): MetadataSettings {
  if (given === null) return { kind: "sqlite-file", path: join(dataDirectory, "meta.db") };
  const refuse = (why: string) =>
    new PicoError("settings", `unsupported --meta-url ${JSON.stringify(hideCredentials(given.text))}: ${why}`, {
      flag: given.origin,
      isStartup: true,
    });
  if (isPostgresUrl(given.text)) {
    const place = postgresPlaceFromUrl(given.text, given.origin, (path) => resolve(workingDirectory, path));
    return { kind: "postgres", place };
  }
  const path = /^sqlite:(?:\/\/)?(.*)$/s.exec(given.text)?.[1];
  if (path === undefined) throw refuse("use sqlite:PATH, sqlite::memory: or postgres://USER:PASSWORD@HOST/DATABASE");
  if (path === "" || path.includes("\0")) throw refuse("it names no file; use sqlite:PATH or sqlite::memory:");
  return path === ":memory:" ? { kind: "sqlite-memory" } : { kind: "sqlite-file", path: resolve(workingDirectory, path) };
}

function readBuckets(values: FlagValues, dataDirectory: string, workingDirectory: string): Pick<Settings, "storage" | "wal"> {
  const toAbsolute = (path: string) => resolve(workingDirectory, path);
  const objects: BucketUri = { id: STORAGE_ID_DEFAULT, scheme: "file", path: join(dataDirectory, "objects"), parameters: new Map() };
  const given = readBucket(values, "--storage", STORAGE_ID_DEFAULT) ?? { uri: objects, origin: "--storage" };
  const storage = storageFromUri(given.uri, toAbsolute, given.origin);
  const wal = readWal(values, given, toAbsolute);
  assertPlacesDiffer(storage, wal);
  return { storage, wal };
}

function readWal(values: FlagValues, storage: GivenBucket, toAbsolute: (path: string) => string): WalSettings {
  const idDefault = walIdBeside(storage.uri);
  const text = values.text("--wal");
  if (text === null) return walBesideStorage(storage.uri, toAbsolute, storage.origin);
  const inPostgres = postgresWalFromUri(text.text, idDefault, text.origin, toAbsolute);
  return inPostgres ?? walFromUri(parseBucketUri(text.text, text.origin, idDefault), toAbsolute, text.origin);
}

interface GivenBucket {
  readonly uri: BucketUri;
  readonly origin: string;
}

function readBucket(values: FlagValues, flag: string, idDefault: number): GivenBucket | null {
  const given = values.text(flag);
  if (given === null) return null;
  const { text, origin } = given;
  return { uri: parseBucketUri(text, origin, idDefault), origin };
}

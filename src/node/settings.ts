/**
 * Everything that decides how a node runs, as one plain value. The command line makes it from flags and the
 * environment, tests make it by hand; a node reads no other source. Values are checked where they are made
 * and not again.
 */
import { dirname, isAbsolute, join, relative } from "node:path";
import { PicoError } from "../lib/errors.ts";
import type { LogFormat, LogLevel } from "../lib/log.ts";
import type { PostgresPlace } from "../sql/postgres-place.ts";
import type { S3Place } from "../storage/s3-place.ts";
import { BUCKET_ID_MIN, type BucketUri, readWalParameters, type WalParameters } from "./bucket-uri.ts";
import { s3PlaceFromUri } from "./s3-uri.ts";

/** Where a listener binds. */
export interface ListenAddress {
  /** Name or address, IPv6 without brackets. */
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
}

/** One listener for streams. */
export interface StreamListenerSettings {
  readonly listen: ListenAddress;
  /** URL that redirects and other nodes name, without a slash at its end; null: `http://` and the bound address. @default null */
  readonly advertisedUrl: string | null;
}

export type MetadataSettings =
  | { readonly kind: "sqlite-memory" }
  /** `path` is absolute. */
  | { readonly kind: "sqlite-file"; readonly path: string }
  /** Shared by the nodes of a cluster. */
  | { readonly kind: "postgres"; readonly place: PostgresPlace };

export type StorageSettings =
  /** `directory` is absolute. */
  | { readonly kind: "file"; readonly id: number; readonly directory: string }
  | { readonly kind: "s3"; readonly id: number; readonly place: S3Place }
  /** Private to the process and empty at its start. */
  | { readonly kind: "memory"; readonly id: number; readonly label: string };

export type WalSettings = { readonly id: number; readonly parameters: WalParameters } & (
  | { readonly kind: "local"; readonly directory: string }
  /** Segments as objects in a bucket: that of the storage, or another one. */
  | { readonly kind: "s3"; readonly place: S3Place }
  /** Segments as rows. `isUnsafeAllowed`: also where the server may lose what it committed. */
  | { readonly kind: "postgres"; readonly place: PostgresPlace; readonly isUnsafeAllowed: boolean }
  /** Segments as objects of a memory store of its own. */
  | { readonly kind: "memory"; readonly label: string }
);

/** Which web pages and hosts the stream listeners and the admin listener answer (DESIGN 7). */
export interface OriginSettings {
  /** Allowed besides loopback ones and the advertised one; `*` allows all. @default [] */
  readonly allowedOrigins: readonly string[];
  /** Host names allowed besides loopback ones and the advertised one. @default [] */
  readonly allowedHosts: readonly string[];
}

export interface Settings {
  /** Unique in the cluster and stable over restarts; 32-bit signed. @default 1 */
  readonly nodeId: number;
  /** Null: max(now, last registered + 1). @default null */
  readonly nodeEpoch: number | null;
  /** First segment of all keys in the object store. @default "picomq" */
  readonly clusterId: string;

  /** Absolute; the default places of metadata, objects and WAL are in it. @default ./data */
  readonly dataDirectory: string;
  readonly metadata: MetadataSettings;
  readonly storage: StorageSettings;
  readonly wal: WalSettings;

  /** The command log is mirrored into the object store, so that `pico restore` can rebuild the database. @default with s3:// and a SQLite file */
  readonly isMirrored: boolean;

  /** Listener of the Pico protocol; null: none. @default 127.0.0.1:4437 */
  readonly pico: StreamListenerSettings | null;
  /** Listener of the Durable Streams protocol; null: none. @default 127.0.0.1:4438 */
  readonly durableStreams: StreamListenerSettings | null;
  /** Listener for operators; null: none. @default 127.0.0.1:9090 */
  readonly admin: { readonly listen: ListenAddress } | null;
  readonly streamOrigins: OriginSettings;
  readonly adminOrigins: OriginSettings;
  /** Connections that wait to be accepted, on each listener. @default 1024 */
  readonly acceptQueueMax: number;

  /** A long poll without data answers after this. @default 25 */
  readonly longPollSeconds: number;
  /** An SSE response ends after this, for the client to come back. @default 55 */
  readonly sseSeconds: number;
  /** Page of a read that asks for none, and chunk of SSE. @default 65536 */
  readonly pageBytesDefault: number;
  /** Largest request body. @default 33554432 */
  readonly requestBytesMax: number;

  /** Recent records kept in memory beyond those not yet uploaded. @default 209715200 */
  readonly logCacheBytes: number;
  /** Blocks of data objects kept in memory. @default 104857600 */
  readonly blockCacheBytes: number;
  /** Not yet uploaded bytes that start an upload; at most 2/5 of the WAL's backlog. @default 104857600 */
  readonly uploadBytes: number;
  /** Age of the oldest not uploaded entry that starts an upload; null: no such trigger. @default 60000 */
  readonly uploadIntervalMs: number | null;

  /**
   * Between two comparisons of store and metadata by the node that runs maintenance; 0: none by themselves. Each lists
   * every key of the cluster once: a list request for a thousand keys. @default 86400
   */
  readonly scrubIntervalSeconds: number;

  /** Time between "not ready" and the end of accepting, at a graceful stop. @default 0 */
  readonly shutdownDrainSeconds: number;
  /** A graceful stop that takes longer ends as a crash would. @default 30 */
  readonly stopTimeoutSeconds: number;

  /** Null: text on a terminal, JSON otherwise. @default null */
  readonly logFormat: LogFormat | null;
  /** @default "info" */
  readonly logLevel: LogLevel;
}

/** Where a node keeps its state. */
export type StoredPlaces = Pick<Settings, "clusterId" | "dataDirectory" | "metadata" | "storage" | "wal">;

/** The object store that a bucket URI names. `resolvePath` makes a directory absolute. */
export function storageFromUri(uri: BucketUri, resolvePath: (path: string) => string, flag: string): StorageSettings {
  switch (uri.scheme) {
    case "file":
      return { kind: "file", id: uri.id, directory: resolvePath(uri.path) };
    case "mem":
      return { kind: "memory", id: uri.id, label: uri.path };
    case "s3":
      return { kind: "s3", id: uri.id, place: s3PlaceFromUri(uri, flag) };
  }
}

/** The WAL that a bucket URI names: a `file` one is the local-disk WAL, locked by its process. */
export function walFromUri(uri: BucketUri, resolvePath: (path: string) => string, flag: string): WalSettings {
  switch (uri.scheme) {
    case "file":
      return { kind: "local", id: uri.id, directory: resolvePath(uri.path), parameters: readWalParameters(uri, "local", flag) };
    case "mem":
      return { kind: "memory", id: uri.id, label: uri.path, parameters: readWalParameters(uri, "object", flag) };
    case "s3":
      return { kind: "s3", id: uri.id, place: s3PlaceFromUri(uri, flag), parameters: readWalParameters(uri, "object", flag) };
  }
}

/**
 * The WAL of a node that names none: the storage's id minus 1 and its parameters; beside a directory, in
 * the folder `wal`; in the same bucket; in memory for memory.
 */
export function walBesideStorage(uri: BucketUri, resolvePath: (path: string) => string, flag: string): WalSettings {
  const id = walIdBeside(uri);
  const path = uri.scheme === "file" ? join(dirname(resolvePath(uri.path)), "wal") : uri.path;
  return walFromUri({ ...uri, id, path }, resolvePath, flag);
}

export function walIdBeside(storage: BucketUri): number {
  return Math.max(storage.id - 1, BUCKET_ID_MIN);
}

/** A WAL's files and the objects are not told apart inside one directory. Throws `settings`. */
export function assertPlacesDiffer(storage: StorageSettings, wal: WalSettings): void {
  if (storage.kind !== "file" || wal.kind !== "local") return;
  if (!contains(storage.directory, wal.directory) && !contains(wal.directory, storage.directory)) return;
  throw new PicoError(
    "settings",
    `--wal ${JSON.stringify(wal.directory)} and --storage ${JSON.stringify(storage.directory)} overlap; give each a directory of its own`,
    { flag: "--wal", isStartup: true },
  );
}

/** Whether only this machine reaches an address: 127.0.0.0/8, `::1` and `localhost`. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^::ffff:/, "");
  return name === "localhost" || name === "::1" || /^127(\.\d{1,3}){3}$/.test(name);
}

/** `host:port`, with brackets around IPv6. */
export function formatListenAddress(address: ListenAddress): string {
  return address.host.includes(":") ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}

/**
 * Where pages of the admin listener itself come from: the address that it listens on, and its port on the hosts that the
 * stream listeners are advertised with. An address that stands for all of a machine's names none of them.
 */
export function adminUrlsOf({ admin, pico, durableStreams }: Pick<Settings, "admin" | "pico" | "durableStreams">): readonly string[] {
  if (admin === null) return [];
  const { host, port } = admin.listen;
  const advertised = [pico, durableStreams].map((listener) => listener?.advertisedUrl ?? null).filter((url) => url !== null);
  const own = ["0.0.0.0", "::"].includes(host) ? [] : [formatListenAddress(admin.listen)];
  return [...own, ...advertised.map((url) => `${new URL(url).hostname}:${port}`)].map((authority) => `http://${authority}`);
}

function contains(outer: string, inner: string): boolean {
  const path = relative(outer, inner);
  return path === "" || !(path === ".." || path.startsWith("../") || path.startsWith("..\\") || isAbsolute(path));
}

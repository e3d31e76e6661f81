/**
 * The flags of `pico serve`: what the command line accepts and what the help says. Each has a variable of the same
 * name (`--node-id`, `PICO_NODE_ID`). `serve-settings.ts` gives the texts their meaning.
 */
import {
  BLOCK_CACHE_BYTES_DEFAULT,
  LOG_CACHE_BYTES_DEFAULT,
  LONG_POLL_SECONDS_DEFAULT,
  PAGE_BYTES_DEFAULT,
  REQUEST_BYTES_DEFAULT,
  SCRUB_INTERVAL_SECONDS_DEFAULT,
  SSE_SECONDS_DEFAULT,
  STOP_TIMEOUT_SECONDS_DEFAULT,
  UPLOAD_BYTES_DEFAULT,
  UPLOAD_INTERVAL_MS_DEFAULT,
} from "../lib/limits.ts";
import { defineFlag, type FlagDefinition } from "./flag-definition.ts";

/** Where a node keeps its state; `pico backup`, `pico restore` and `pico doctor` take them too. */
export const PLACE_FLAGS: readonly FlagDefinition[] = [
  defineFlag("--cluster-id", "NAME", "name of the cluster, first part of all keys in the store", "picomq"),
  defineFlag(
    "--data-dir",
    "DIR",
    "folder of metadata, objects and WAL where --meta-url, --storage and --wal do not say otherwise",
    "./data",
  ),
  defineFlag(
    "--meta-url",
    "URL",
    "metadata: sqlite:PATH, sqlite::memory: or postgres://USER:PASSWORD@HOST/DATABASE",
    "sqlite:DATA-DIR/meta.db",
  ),
  defineFlag("--storage", "URI", "objects: s3://BUCKET/PREFIX, ID@file://DIR or ID@mem://LABEL", "-2@file://DATA-DIR/objects"),
  defineFlag(
    "--wal",
    "URI",
    "write-ahead log: ID@file://DIR, s3://BUCKET/PREFIX, postgres://… or ID@mem://LABEL",
    "the folder wal beside the storage, or the storage's bucket",
  ),
];

export const NODE_ID_FLAG: FlagDefinition = defineFlag(
  "--node-id",
  "NUMBER",
  "id of this node, unique in the cluster and the same after a restart",
  1,
);

export const SERVE_FLAGS: readonly FlagDefinition[] = [
  NODE_ID_FLAG,
  defineFlag("--node-epoch", "NUMBER", "number of this life of the node, higher than all before", "time in ms"),
  ...PLACE_FLAGS,

  defineFlag(
    "--mirror",
    "WORD",
    "copy the command log into --storage, for pico restore: auto, on or off",
    "auto: on with s3:// and SQLite",
  ),

  defineFlag("--listen", "HOST:PORT", "stream listener; port 0 takes any free one", "127.0.0.1:4437"),
  defineFlag("--http-address", "URL", "address of --listen that clients are sent to", "http://LISTEN"),
  defineFlag("--ds-listen", "HOST:PORT", "Durable Streams listener beside a Pico one", "127.0.0.1:4438"),
  defineFlag("--ds-http-address", "URL", "address of --ds-listen that clients are sent to", "http://DS-LISTEN"),
  defineFlag("--no-ds", null, "no Durable Streams listener", null),
  defineFlag("--admin-listen", "HOST:PORT", "listener for operators", "127.0.0.1:9090"),
  defineFlag("--no-admin", null, "no listener for operators", null),
  defineFlag("--insecure-allow-remote", null, "allow listeners that other machines reach, without authentication", null),
  defineFlag("--cors-origin", "ORIGIN...", "origins of web pages that may use the stream listeners, * for all", "loopback ones"),
  defineFlag("--admin-cors-origin", "ORIGIN...", "the same for the admin listener", "loopback ones"),
  defineFlag("--allowed-host", "HOST...", "host names that web pages may reach this node by", "loopback ones"),
  defineFlag("--backlog", "NUMBER", "connections that wait to be accepted, on each listener", 1024),

  defineFlag("--long-poll-timeout-sec", "SECONDS", "how long a long poll waits for data", LONG_POLL_SECONDS_DEFAULT),
  defineFlag("--sse-max-duration-sec", "SECONDS", "how long an SSE response lasts before the client comes back", SSE_SECONDS_DEFAULT),
  defineFlag("--max-chunk-size", "BYTES", "page of a read that names none, and chunk of SSE; 0 is the default", PAGE_BYTES_DEFAULT),
  defineFlag("--max-request-size", "BYTES", "largest request body; 0 is the default", REQUEST_BYTES_DEFAULT),

  defineFlag("--wal-cache-size", "BYTES", "memory for recent records", LOG_CACHE_BYTES_DEFAULT),
  defineFlag("--block-cache-size", "BYTES", "memory for blocks of data objects", BLOCK_CACHE_BYTES_DEFAULT),
  defineFlag("--wal-upload-threshold", "BYTES", "upload the WAL at this size", UPLOAD_BYTES_DEFAULT),
  defineFlag("--wal-upload-interval-ms", "MS", "upload the WAL at this age; 0 turns it off", UPLOAD_INTERVAL_MS_DEFAULT),

  defineFlag(
    "--scrub-interval-sec",
    "SECONDS",
    "between two comparisons of store and metadata (pico admin scrub) by themselves; 0 turns them off",
    SCRUB_INTERVAL_SECONDS_DEFAULT,
  ),
  defineFlag("--shutdown-drain-sec", "SECONDS", "at a stop, time between not ready and the end of accepting", 0),
  defineFlag("--stop-timeout-sec", "SECONDS", "longest graceful stop, then as after a crash", STOP_TIMEOUT_SECONDS_DEFAULT),
  defineFlag("--log-format", "text|json", "form of log lines on stderr", "text on a terminal, else json"),
  defineFlag("--log-level", "LEVEL", "trace, debug, info, warn, error or silent", "info"),
];

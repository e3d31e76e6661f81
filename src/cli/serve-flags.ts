/**
 * The flags of `pico serve`: what the command line accepts and what the help says. Each has a variable of the same
 * name (`--node-id`, `PICO_NODE_ID`). `serve-settings.ts` gives the texts their meaning.
 */
import { Option } from "commander";
import {
  BLOCK_CACHE_BYTES_DEFAULT,
  LOG_CACHE_BYTES_DEFAULT,
  LONG_POLL_SECONDS_DEFAULT,
  PAGE_BYTES_DEFAULT,
  REQUEST_BYTES_DEFAULT,
  SSE_SECONDS_DEFAULT,
  STOP_TIMEOUT_SECONDS_DEFAULT,
  UPLOAD_BYTES_DEFAULT,
  UPLOAD_INTERVAL_MS_DEFAULT,
} from "../lib/limits.ts";
import { variableOf } from "./flag-values.ts";

export interface FlagDefinition {
  /** `--node-id`. */
  readonly flag: string;
  /** Stands for the value in the help; `null` for a switch; `...` at its end allows several. */
  readonly value: string | null;
  readonly help: string;
  /** As the help shows it; null where there is none. */
  readonly defaultText: string | null;
}

function define(flag: string, value: string | null, help: string, defaultValue: string | number | null): FlagDefinition {
  return { flag, value, help, defaultText: defaultValue === null ? null : String(defaultValue) };
}

/** Stands before the command too. */
export const PROTOCOL_FLAG = define("--protocol", "pico|ds", "protocol of --listen", "pico");

export const SERVE_FLAGS: readonly FlagDefinition[] = [
  define("--node-id", "NUMBER", "id of this node, unique in the cluster and the same after a restart", 1),
  define("--node-epoch", "NUMBER", "number of this life of the node, higher than all before", "time in ms"),
  define("--cluster-id", "NAME", "name of the cluster, first part of all keys in the store", "picomq"),

  define("--data-dir", "DIR", "folder of metadata, objects and WAL where --meta-url, --storage and --wal do not say otherwise", "./data"),
  define("--meta-url", "URL", "metadata: sqlite:PATH or sqlite::memory:", "sqlite:DATA-DIR/meta.db"),
  define("--storage", "URI", "objects: ID@file://DIR or ID@mem://LABEL", "-2@file://DATA-DIR/objects"),
  define("--wal", "URI", "write-ahead log: ID@file://DIR or ID@mem://LABEL", "the folder wal beside the storage"),

  define("--listen", "HOST:PORT", "stream listener; port 0 takes any free one", "127.0.0.1:4437"),
  define("--http-address", "URL", "address of --listen that clients are sent to", "http://LISTEN"),
  define("--ds-listen", "HOST:PORT", "Durable Streams listener beside a Pico one", "127.0.0.1:4438"),
  define("--ds-http-address", "URL", "address of --ds-listen that clients are sent to", "http://DS-LISTEN"),
  define("--no-ds", null, "no Durable Streams listener", null),
  define("--admin-listen", "HOST:PORT", "listener for operators", "127.0.0.1:9090"),
  define("--no-admin", null, "no listener for operators", null),
  define("--insecure-allow-remote", null, "allow listeners that other machines reach, without authentication", null),
  define("--cors-origin", "ORIGIN...", "origins of web pages that may use the stream listeners, * for all", "loopback ones"),
  define("--admin-cors-origin", "ORIGIN...", "the same for the admin listener", "loopback ones"),
  define("--allowed-host", "HOST...", "host names that web pages may reach this node by", "loopback ones"),
  define("--backlog", "NUMBER", "connections that wait to be accepted, on each listener", 1024),

  define("--long-poll-timeout-sec", "SECONDS", "how long a long poll waits for data", LONG_POLL_SECONDS_DEFAULT),
  define("--sse-max-duration-sec", "SECONDS", "how long an SSE response lasts before the client comes back", SSE_SECONDS_DEFAULT),
  define("--max-chunk-size", "BYTES", "page of a read that names none, and chunk of SSE; 0 is the default", PAGE_BYTES_DEFAULT),
  define("--max-request-size", "BYTES", "largest request body; 0 is the default", REQUEST_BYTES_DEFAULT),

  define("--wal-cache-size", "BYTES", "memory for recent records", LOG_CACHE_BYTES_DEFAULT),
  define("--block-cache-size", "BYTES", "memory for blocks of data objects", BLOCK_CACHE_BYTES_DEFAULT),
  define("--wal-upload-threshold", "BYTES", "upload the WAL at this size", UPLOAD_BYTES_DEFAULT),
  define("--wal-upload-interval-ms", "MS", "upload the WAL at this age; 0 turns it off", UPLOAD_INTERVAL_MS_DEFAULT),

  define("--shutdown-drain-sec", "SECONDS", "at a stop, time between not ready and the end of accepting", 0),
  define("--stop-timeout-sec", "SECONDS", "longest graceful stop, then as after a crash", STOP_TIMEOUT_SECONDS_DEFAULT),
  define("--log-format", "text|json", "form of log lines on stderr", "text on a terminal, else json"),
  define("--log-level", "LEVEL", "trace, debug, info, warn, error or silent", "info"),
];

/** As commander takes it: values stay texts. */
export function toOption(definition: FlagDefinition): Option {
  const value = definition.value === null ? "" : ` <${definition.value}>`;
  const notes = [definition.defaultText === null ? [] : `default: ${definition.defaultText}`, `env: ${variableOf(definition.flag)}`];
  return new Option(`${definition.flag}${value}`, `${definition.help} (${notes.flat().join("; ")})`);
}

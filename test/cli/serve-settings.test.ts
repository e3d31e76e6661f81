import { expect, test } from "bun:test";
import { type Environment, FlagValues } from "../../src/cli/flag-values.ts";
import { readServeSettings } from "../../src/cli/serve-settings.ts";
import { isPicoError } from "../../src/lib/errors.ts";
import { MIB } from "../../src/lib/limits.ts";
import type { Settings } from "../../src/node/settings.ts";

function read(flags: Record<string, string | readonly string[]> = {}, environment: Environment = {}): Settings {
  const given = new Map(Object.entries(flags).map(([flag, value]) => [flag, typeof value === "string" ? [value] : value]));
  return readServeSettings(new FlagValues(given, environment), "/home/me");
}

/** Which flag or variable a refusal names; null where nothing is refused. */
function refusedOrigin(flags: Record<string, string | readonly string[]>, environment: Environment = {}): unknown {
  try {
    read(flags, environment);
  } catch (error) {
    if (isPicoError(error, "settings")) return error.facts.flag;
    throw error;
  }
  return null;
}

test("without flags and variables a node has the defaults", () => {
  expect(read()).toEqual({
    nodeId: 1,
    nodeEpoch: null,
    clusterId: "picomq",
    isMirrored: false,
    dataDirectory: "/home/me/data",
    metadata: { kind: "sqlite-file", path: "/home/me/data/meta.db" },
    storage: { kind: "file", id: -2, directory: "/home/me/data/objects" },
    wal: {
      kind: "local",
      id: -3,
      directory: "/home/me/data/wal",
      parameters: { lingerMs: 0, batchBytesMax: 8 * MIB, inFlightMax: 2, backlogBytesMax: 256 * MIB },
    },
    pico: { listen: { host: "127.0.0.1", port: 4437 }, advertisedUrl: null },
    durableStreams: { listen: { host: "127.0.0.1", port: 4438 }, advertisedUrl: null },
    admin: { listen: { host: "127.0.0.1", port: 9090 } },
    streamOrigins: { allowedOrigins: [], allowedHosts: [] },
    adminOrigins: { allowedOrigins: [], allowedHosts: [] },
    acceptQueueMax: 1024,
    longPollSeconds: 25,
    sseSeconds: 55,
    pageBytesDefault: 65_536,
    requestBytesMax: 32 * MIB,
    logCacheBytes: 200 * MIB,
    blockCacheBytes: 100 * MIB,
    uploadBytes: 100 * MIB,
    uploadIntervalMs: 60_000,
    scrubIntervalSeconds: 86_400,
    shutdownDrainSeconds: 0,
    stopTimeoutSeconds: 30,
    logFormat: null,
    logLevel: "info",
  });
});

test("--data-dir moves metadata, objects and WAL, and what is named stays where it is named", () => {
  const moved = read({ "--data-dir": "/d" });
  expect([moved.metadata, moved.storage, moved.wal]).toMatchObject([
    { path: "/d/meta.db" },
    { directory: "/d/objects" },
    { directory: "/d/wal" },
  ]);
  const named = read({ "--data-dir": "/d", "--meta-url": "sqlite:m.db", "--wal": "5@file://w" });
  expect([named.metadata, named.storage, named.wal]).toMatchObject([
    { path: "/home/me/m.db" },
    { directory: "/d/objects" },
    { id: 5, directory: "/home/me/w" },
  ]);
});

// Each number: flag, setting, default, what 0 means ("refused" where it is none), greatest value.
const numbers: readonly (readonly [string, keyof Settings, number | null, number | null | "refused", number])[] = [
  ["--node-id", "nodeId", 1, 0, 2 ** 31 - 1],
  ["--node-epoch", "nodeEpoch", null, 0, Number.MAX_SAFE_INTEGER],
  ["--backlog", "acceptQueueMax", 1024, "refused", 65_535],
  ["--long-poll-timeout-sec", "longPollSeconds", 25, 0, 86_400],
  ["--sse-max-duration-sec", "sseSeconds", 55, "refused", 86_400],
  ["--max-chunk-size", "pageBytesDefault", 65_536, 65_536, 4 * MIB],
  ["--max-request-size", "requestBytesMax", 32 * MIB, 32 * MIB, 64 * MIB],
  ["--wal-cache-size", "logCacheBytes", 200 * MIB, 0, 2 ** 40],
  ["--block-cache-size", "blockCacheBytes", 100 * MIB, 0, 2 ** 40],
  ["--wal-upload-interval-ms", "uploadIntervalMs", 60_000, null, 86_400_000],
  ["--scrub-interval-sec", "scrubIntervalSeconds", 86_400, 0, 31_536_000],
  ["--shutdown-drain-sec", "shutdownDrainSeconds", 0, 0, 86_400],
  ["--stop-timeout-sec", "stopTimeoutSeconds", 30, 0, 86_400],
];

test.each(numbers)(
  "%s: absent, empty, 0, default and greatest are five cases, for flag and variable",
  (flag, setting, defaultValue, zero, greatest) => {
    const variable = `PICO_${flag.slice(2).replaceAll("-", "_").toUpperCase()}`;
    expect(read()[setting]).toEqual(defaultValue as never);
    for (const give of [
      (text: string) => [{ [flag]: text }, {}, flag] as const,
      (text: string) => [{}, { [variable]: text }, variable] as const,
    ]) {
      const value = (text: string) => read(...(give(text).slice(0, 2) as [Record<string, string>, Environment]))[setting];
      const origin = (text: string) => refusedOrigin(...(give(text).slice(0, 2) as [Record<string, string>, Environment]));
      const name = give("")[2];
      expect(origin("")).toBe(name);
      if (zero === "refused") expect(origin("0")).toBe(name);
      else expect(value("0")).toEqual(zero as never);
      if (defaultValue !== null) expect(value(String(defaultValue))).toEqual(defaultValue as never);
      expect(value(String(greatest))).toEqual(greatest as never);
      for (const text of [String(BigInt(greatest) + 1n), "abc", "1.5", "1e3", "0x10", " 1", "+1", "18446744073709551616", "-99999999999"]) {
        expect(origin(text)).toBe(name);
      }
    }
  },
);

test("the flag wins over the variable, which wins over the default, and a variable that loses is not read", () => {
  expect(read({ "--node-id": "7" }, { PICO_NODE_ID: "8" }).nodeId).toBe(7);
  expect(read({}, { PICO_NODE_ID: "8" }).nodeId).toBe(8);
  expect(read({ "--node-id": "7" }, { PICO_NODE_ID: "nonsense" }).nodeId).toBe(7);
  expect(read({ "--node-id": "0" }, { PICO_NODE_ID: "8" }).nodeId).toBe(0);
});

test("a node id may be negative, to the end of 32 bits", () => {
  expect(read({ "--node-id": "-2147483648" }).nodeId).toBe(-(2 ** 31));
  expect(refusedOrigin({ "--node-id": "-2147483649" })).toBe("--node-id");
});

test("a switch's variable is on, off or refused by name", () => {
  for (const text of ["1", "true", "YES", "on"]) expect(read({}, { PICO_NO_ADMIN: text }).admin).toBeNull();
  for (const text of ["0", "false", "No", "off", ""]) expect(read({}, { PICO_NO_ADMIN: text }).admin).not.toBeNull();
  expect(refusedOrigin({}, { PICO_NO_ADMIN: "maybe" })).toBe("PICO_NO_ADMIN");
  expect(read({ "--no-admin": [] }, { PICO_NO_ADMIN: "0" }).admin).toBeNull();
});

test("the Durable Streams protocol on --listen leaves one stream listener, with its advertised address", () => {
  const settings = read({ "--protocol": "ds", "--listen": "[::1]:1", "--http-address": "https://ds.example.com" });
  expect(settings.pico).toBeNull();
  expect(settings.durableStreams).toEqual({ listen: { host: "::1", port: 1 }, advertisedUrl: "https://ds.example.com" });
  expect(read({ "--no-ds": [] }).durableStreams).toBeNull();
  expect(refusedOrigin({ "--protocol": "kafka" })).toBe("--protocol");
});

test("an address that other machines reach is refused on each listener, unless that is allowed", () => {
  for (const flag of ["--listen", "--ds-listen", "--admin-listen"]) {
    expect(refusedOrigin({ [flag]: "0.0.0.0:5000" })).toBe(flag);
    expect(refusedOrigin({ [flag]: "[::]:5000", "--insecure-allow-remote": [] })).toBeNull();
    expect(refusedOrigin({ [flag]: "0.0.0.0:5000" }, { PICO_INSECURE_ALLOW_REMOTE: "yes" })).toBeNull();
  }
  expect(refusedOrigin({ "--no-admin": [], "--admin-listen": "0.0.0.0:5000" })).toBeNull();
});

test("what is no address, URL, origin, host or cluster name is refused by name", () => {
  const wrong: Readonly<Record<string, readonly string[]>> = {
    "--listen": ["", "4437", ":4437", "localhost", "localhost:", "localhost:65536", "::1:80", "[::1]", "http://localhost:1", "a b:1"],
    "--http-address": ["", "n1:4437", "ftp://n1", "http://n1/", "http://n1?x", "http://u:p@n1", "http://"],
    "--cors-origin": ["", "example.com", "https://example.com/path", "null", "file:///a"],
    "--allowed-host": ["", "http://a", "a:80", "a/b"],
    "--cluster-id": ["", ".", "..", "a/b", "ä", "a".repeat(65)],
    "--log-level": ["", "loud", "INFO"],
    "--log-format": ["", "pretty"],
    "--data-dir": [""],
  };
  for (const [flag, texts] of Object.entries(wrong))
    for (const text of texts) expect([flag, text, refusedOrigin({ [flag]: text })]).toEqual([flag, text, flag]);
});

test("two listeners on one port are refused, on port 0 they are not", () => {
  expect(refusedOrigin({ "--listen": "127.0.0.1:9090" })).toBe("--admin-listen");
  expect(refusedOrigin({ "--listen": "127.0.0.1:0", "--ds-listen": "127.0.0.1:0", "--admin-listen": "127.0.0.1:0" })).toBeNull();
});

test("lists come repeated from the flag and with commas from the variable", () => {
  const fromFlag = read({ "--cors-origin": ["https://A.example.com", "http://b.example.com:8080"], "--allowed-host": ["DB.local"] });
  expect(fromFlag.streamOrigins).toEqual({
    allowedOrigins: ["https://a.example.com", "http://b.example.com:8080"],
    allowedHosts: ["db.local"],
  });
  expect(fromFlag.adminOrigins).toEqual({ allowedOrigins: [], allowedHosts: ["db.local"] });
  expect(read({}, { PICO_ADMIN_CORS_ORIGIN: "https://a.example.com, *" }).adminOrigins.allowedOrigins).toEqual([
    "https://a.example.com",
    "*",
  ]);
  expect(refusedOrigin({}, { PICO_CORS_ORIGIN: "" })).toBe("PICO_CORS_ORIGIN");
});

test("--meta-url takes the forms of SQLite, and names every other one", () => {
  const path = (text: string) => read({ "--meta-url": text }).metadata;
  for (const text of ["sqlite::memory:", "sqlite://:memory:"]) expect(path(text)).toEqual({ kind: "sqlite-memory" });
  expect(path("sqlite:a/b.db")).toEqual({ kind: "sqlite-file", path: "/home/me/a/b.db" });
  expect(path("sqlite:///a/b.db")).toEqual({ kind: "sqlite-file", path: "/a/b.db" });
  for (const text of ["sqlite:", "sqlite://", "mysql://h/d", "meta.db"]) {
    expect(() => path(text)).toThrow(/^unsupported --meta-url (?!.*secret)/);
  }
});

test("--meta-url takes Postgres, where a cluster keeps its own copy", () => {
  const flags = { "--meta-url": "postgres://u:p@h/d?sslmode=verify-ca&sslrootcert=ca.pem", "--storage": "-2@s3://bucket" };
  const { metadata, isMirrored } = read(flags);
  expect(metadata).toMatchObject({
    kind: "postgres",
    place: { user: "u", password: "p", database: "d", tls: { rootCertificatePath: "/home/me/ca.pem" } },
  });
  expect(isMirrored).toBeFalse();
  expect(() => read({ "--meta-url": "postgres://u:secret@h" })).toThrow(/^unsupported --meta-url (?!.*secret)/);
});

test("--storage in a bucket brings the WAL with it, and each may be elsewhere", () => {
  const stored = (flags: Record<string, string>) => {
    const { storage, wal, metadata } = read(flags);
    return [storage, wal, metadata];
  };
  const metadata = { path: "/home/me/data/meta.db" };
  expect(stored({ "--storage": "s3://b2b" })).toMatchObject([
    { kind: "s3", id: -2 },
    { kind: "s3", id: -3, place: { bucket: "b2b" } },
    metadata,
  ]);
  expect(stored({ "--storage": "9@s3://b2b", "--wal": "s3://wal/p" })).toMatchObject([
    { kind: "s3", id: 9 },
    { kind: "s3", id: 8, place: { bucket: "wal", prefix: "p/" } },
    metadata,
  ]);
  expect(stored({ "--storage": "s3://b2b", "--wal": "1@file:///w" })).toMatchObject([{ kind: "s3" }, { kind: "local" }, metadata]);
  expect(stored({ "--wal": "s3://wal" })).toMatchObject([{ kind: "file", id: -2 }, { kind: "s3", id: -3 }, metadata]);
  expect(refusedOrigin({ "--storage": "s3://b2b?pathStyle=maybe" })).toBe("--storage");
  expect(refusedOrigin({}, { PICO_STORAGE: "s3://B" })).toBe("PICO_STORAGE");
});

test("--wal takes Postgres, whose batches are smaller; --storage does not", () => {
  expect(read({ "--storage": "-2@s3://bucket", "--wal": "postgres://u:p@h/d?maxInflight=8&sslmode=require" }).wal).toMatchObject({
    kind: "postgres",
    id: -3,
    place: { database: "d", tls: { mode: "require" }, connectionsMax: 10 },
    isUnsafeAllowed: false,
    parameters: { lingerMs: 0, batchBytesMax: 1 << 20, inFlightMax: 8, backlogBytesMax: 256 << 20 },
  });
  expect(read({ "--wal": "7@postgresql://u@h/d?allowUnsafe=true&batchInterval=2&segments=8&max=20" }).wal).toMatchObject({
    kind: "postgres",
    id: 7,
    place: { connectionsMax: 20 },
    isUnsafeAllowed: true,
    parameters: { lingerMs: 2, inFlightMax: 4 },
  });
  for (const text of ["postgres://u:secret@h", "99999@postgres://u:secret@h/d", "postgres://u:secret@h/d?sslmod=require"]) {
    expect(() => read({ "--wal": text })).toThrow(/^(?!.*secret).*--wal/);
  }
  expect(() => read({ "--storage": "1@postgres://u:secret@h/d" })).toThrow(/^(?!.*secret)--storage .*file, s3 or mem/);
});

test("an upload starts before the backlog is full", () => {
  expect(read({ "--storage": "1@mem://d", "--wal": "2@mem://w?maxUnflushedBytes=1000" }).uploadBytes).toBe(400);
  expect(read({ "--wal-upload-threshold": "1" }).uploadBytes).toBe(1);
  expect(refusedOrigin({ "--wal-upload-threshold": "0" })).toBe("--wal-upload-threshold");
});

test("the command log is mirrored where --mirror says so; a directory counts as lost with the machine", () => {
  expect(read().isMirrored).toBeFalse();
  expect(read({ "--mirror": "auto" }).isMirrored).toBeFalse();
  expect(read({ "--mirror": "on" }).isMirrored).toBeTrue();
  const bucket = { "--storage": "-2@s3://bucket?region=us-east-1" };
  expect(read(bucket).isMirrored).toBeTrue();
  expect(read({ ...bucket, "--mirror": "off" }).isMirrored).toBeFalse();
  expect(read({ ...bucket, "--meta-url": "sqlite::memory:" }).isMirrored).toBeFalse();
  expect(refusedOrigin({ "--mirror": "yes" })).toBe("--mirror");
});

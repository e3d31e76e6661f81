import { expect, test } from "bun:test";
import { isPicoError } from "../../src/lib/errors.ts";
import { parseBucketUri } from "../../src/node/bucket-uri.ts";
import {
  adminUrlsOf,
  assertPlacesDiffer,
  formatListenAddress,
  isLoopback,
  type StorageSettings,
  storageFromUri,
  type WalSettings,
  walBesideStorage,
  walFromUri,
} from "../../src/node/settings.ts";

const fromRoot = (path: string) => (path.startsWith("/") ? path : `/base/${path}`);
const uri = (text: string) => parseBucketUri(text, "--storage");
const storage = (text: string): StorageSettings => storageFromUri(uri(text), fromRoot, "--storage");
const wal = (text: string): WalSettings => walFromUri(uri(text), fromRoot, "--wal");
const beside = (text: string): WalSettings => walBesideStorage(uri(text), fromRoot, "--storage");

test("only loopback hosts count as loopback", () => {
  for (const host of ["127.0.0.1", "127.8.9.10", "localhost", "LOCALHOST", "::1", "::ffff:127.0.0.1"]) expect(isLoopback(host)).toBe(true);
  for (const host of ["0.0.0.0", "::", "10.0.0.1", "127.0.0.1.example.com", "localhost.example.com", "127.1", ""])
    expect(isLoopback(host)).toBe(false);
});

test("an address is written with brackets around IPv6", () => {
  expect(formatListenAddress({ host: "::1", port: 80 })).toBe("[::1]:80");
  expect(formatListenAddress({ host: "localhost", port: 0 })).toBe("localhost:0");
});

test("a WAL that is not named is beside the storage, with the id below and the storage's parameters", () => {
  expect(beside("-2@file://data/objects")).toMatchObject({ kind: "local", id: -3, directory: "/base/data/wal" });
  expect(beside("1@mem://d?linger=7")).toMatchObject({ kind: "memory", id: 0, label: "d", parameters: { lingerMs: 7 } });
  expect(beside("-32768@mem://d").id).toBe(-32768);
});

test("a file WAL is a local one, with an absolute directory", () => {
  expect(wal("2@file://w")).toMatchObject({ kind: "local", directory: "/base/w" });
  expect(storage("2@file:///o")).toEqual({ kind: "file", id: 2, directory: "/o" });
});

test("a bucket that is not named again holds the WAL too, with the storage's parameters", () => {
  const place = { bucket: "b2b", prefix: "p/", region: "r", endpoint: null, isPathStyle: null, isExpress: false, encryption: null };
  expect(storage("5@s3://b2b/p?region=r&linger=7")).toEqual({ kind: "s3", id: 5, place });
  expect(beside("5@s3://b2b/p?region=r&linger=7")).toMatchObject({
    kind: "s3",
    id: 4,
    place,
    parameters: { lingerMs: 7, inFlightMax: 16 },
  });
  expect(wal("s3://other")).toMatchObject({ kind: "s3", place: { bucket: "other" } });
});

test("storage and WAL may not share or contain each other's directory", () => {
  const check = (objects: string, log: string) => () => assertPlacesDiffer(storage(objects), wal(log));
  for (const log of ["2@file:///d", "2@file:///d/wal", "2@file:///"]) expect(check("1@file:///d", log)).toThrow();
  for (const log of ["2@file:///d2", "2@file:///..d", "2@mem://d"]) expect(check("1@file:///d", log)).not.toThrow();
  let thrown: unknown = null;
  try {
    check("1@file:///d", "2@file:///d")();
  } catch (error) {
    thrown = error;
  }
  expect(isPicoError(thrown, "settings")).toBe(true);
});

test("pages of the admin listener come from where it listens, and from its port on the advertised hosts", () => {
  const urls = (host: string, advertisedUrl: string | null) =>
    adminUrlsOf({ admin: { listen: { host, port: 9090 } }, pico: { listen: { host, port: 4437 }, advertisedUrl }, durableStreams: null });
  expect(urls("10.0.0.5", null)).toEqual(["http://10.0.0.5:9090"]);
  expect(urls("fd00::5", null)).toEqual(["http://[fd00::5]:9090"]);
  for (const all of ["0.0.0.0", "::"]) expect(urls(all, null)).toEqual([]);
  expect(urls("0.0.0.0", "https://n1.example/streams")).toEqual(["http://n1.example:9090"]);
  expect(urls("10.0.0.5", "http://[fd00::5]:4437")).toEqual(["http://10.0.0.5:9090", "http://[fd00::5]:9090"]);
  expect(adminUrlsOf({ admin: null, pico: null, durableStreams: null })).toEqual([]);
});

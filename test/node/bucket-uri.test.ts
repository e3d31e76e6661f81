import { expect, test } from "bun:test";
import { isPicoError } from "../../src/lib/errors.ts";
import { hideCredentials, parseBucketUri, readWalParameters } from "../../src/node/bucket-uri.ts";

function parse(text: string) {
  return parseBucketUri(text, "--storage");
}

function thrownBy(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  return null;
}

test("a bucket URI has id, scheme, path and parameters", () => {
  expect(parse("-2@file://./objects")).toEqual({ id: -2, scheme: "file", path: "./objects", parameters: new Map() });
  expect(parse("1@file:///var/lib/pico/objects?linger=3&linger=4&x")).toEqual({
    id: 1,
    scheme: "file",
    path: "/var/lib/pico/objects",
    parameters: new Map([
      ["linger", "3"],
      ["x", ""],
    ]),
  });
  expect(parse("3@mem://wal?a=b=c&&d=%41").parameters).toEqual(
    new Map([
      ["a", "b=c"],
      ["d", "%41"],
    ]),
  );
  expect(parse("0@s3://bucket/prefix").path).toBe("bucket/prefix");
  expect(parse("1@file:///a@b").path).toBe("/a@b");
});

test("ids reach over 16 signed bits and no further", () => {
  expect(parse("-32768@mem://a").id).toBe(-32768);
  expect(parse("32767@mem://a").id).toBe(32767);
  for (const id of ["-32769", "32768", "", "1.5", "0x1", "1e3", " 1", "99999999999999999999"]) {
    expect(
      isPicoError(
        thrownBy(() => parse(`${id}@mem://a`)),
        "settings",
      ),
    ).toBe(true);
  }
});

test("a bucket of S3 needs no id", () => {
  expect(parse("s3://bucket?endpoint=http://127.0.0.1:9000&x=a@b")).toMatchObject({ id: -2, scheme: "s3", path: "bucket" });
  expect(parseBucketUri("s3://bucket", "--wal", -7).id).toBe(-7);
  expect(parseBucketUri("0@s3://bucket", "--wal", -7).id).toBe(0);
});

test("what is no bucket URI is refused with the flag's name", () => {
  for (const text of [
    "",
    "objects",
    "file:///a",
    "1@file:/a",
    "1@file://",
    "1@mem://",
    "1@ftp://a",
    "1@://a",
    "1@file://?x=y",
    "1@file:///a\0b",
  ]) {
    const error = thrownBy(() => parse(text));
    expect(isPicoError(error, "settings") && error.facts.flag === "--storage").toBe(true);
  }
});

test("a password is in no message", () => {
  expect(hideCredentials("postgres://u:p@ss/word@host/db")).toBe("postgres://***");
  expect(hideCredentials("user:p@ss@host")).toBe("***");
  expect(hideCredentials("/var/lib/pico")).toBe("/var/lib/pico");
  expect(hideCredentials("1.5@file:///a")).toBe("1.5@file:///a");
  expect(hideCredentials("1@s3://key:p@ss@bucket/a")).toBe("1@s3://***@bucket/a");
  expect(hideCredentials("s3://bucket?secretKey=x&y=z")).toBe("s3://bucket?***");
  for (const text of [
    "1@ftp://user:secret@host",
    "user:secret@s3://bucket",
    "1@ftp://bucket?secretKey=secret",
    "s4://bucket?secretKey=secret",
    "99999@s3://bucket?a=secret",
    "1@file://?a=secret",
  ]) {
    expect(String(thrownBy(() => parse(text)))).not.toContain("secret");
  }
});

test("WAL parameters: absent, not digits, 0, default and beyond the greatest", () => {
  const read = (query: string, medium: "local" | "object" = "object") => readWalParameters(parse(`1@mem://w?${query}`), medium, "--wal");
  const defaults = { lingerMs: 0, batchBytesMax: 8_388_608, inFlightMax: 16, backlogBytesMax: 268_435_456 };
  expect(read("")).toEqual(defaults);
  expect(read("linger=&batchInterval=x&maxBytesInBatch=1e3&maxInflightUploadCount=-1&maxUnflushedBytes=0x10")).toEqual(defaults);
  expect(read("maxBytesInBatch=0&maxInflightUploadCount=0&maxUnflushedBytes=0")).toEqual({
    lingerMs: 0,
    batchBytesMax: 1,
    inFlightMax: 1,
    backlogBytesMax: 1,
  });
  expect(read("maxInflightUploadCount=50").inFlightMax).toBe(50);
  expect(
    isPicoError(
      thrownBy(() => read("maxInflightUploadCount=257")),
      "settings",
    ),
  ).toBe(true);
  expect(
    isPicoError(
      thrownBy(() => read("maxBytesInBatch=99999999999999999999")),
      "settings",
    ),
  ).toBe(true);
});

test("batchInterval is another name of linger, which wins", () => {
  const read = (query: string) => readWalParameters(parse(`1@mem://w?${query}`), "object", "--wal").lingerMs;
  expect(read("batchInterval=5")).toBe(5);
  expect(read("batchInterval=5&linger=0")).toBe(0);
});

test("a local-disk WAL has its two files in flight, whatever the URI says", () => {
  expect(readWalParameters(parse("1@file:///w?maxInflightUploadCount=50"), "local", "--wal").inFlightMax).toBe(2);
});

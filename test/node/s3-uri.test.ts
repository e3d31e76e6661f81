import { expect, test } from "bun:test";
import { isPicoError } from "../../src/lib/errors.ts";
import { parseBucketUri } from "../../src/node/bucket-uri.ts";
import { s3PlaceFromUri } from "../../src/node/s3-uri.ts";

const place = (text: string) => s3PlaceFromUri(parseBucketUri(text, "--storage"), "--storage");

function refusal(text: string): string {
  try {
    place(text);
  } catch (error) {
    if (isPicoError(error, "settings") && error.facts.flag === "--storage") return error.message;
    throw error;
  }
  return "taken";
}

test("a bucket alone leaves all to the environment", () => {
  expect(place("s3://my-bucket")).toEqual({
    bucket: "my-bucket",
    prefix: "",
    region: null,
    endpoint: null,
    isPathStyle: null,
    isExpress: false,
    encryption: null,
  });
});

test("prefix, region, endpoint, path style and unknown names", () => {
  expect(place("s3://b2b/a/b.c/?region=eu-central-1&endpoint=http://127.0.0.1:9000/&pathStyle=true&x=y&region=other")).toMatchObject({
    bucket: "b2b",
    prefix: "a/b.c/",
    region: "eu-central-1",
    endpoint: "http://127.0.0.1:9000",
    isPathStyle: true,
  });
  expect(place("s3://b2b?pathStyle=false").isPathStyle).toBe(false);
});

test("a directory bucket is told by its name, or by the parameter", () => {
  expect(place("s3://logs--use1-az4--x-s3").isExpress).toBe(true);
  expect(place("s3://logs--use1-az4--x-s3?s3Express=false").isExpress).toBe(false);
  expect(place("s3://logs?s3Express=true").isExpress).toBe(true);
});

test("encryption by the store's keys, or by one that is named", () => {
  expect(place("s3://b2b?sse=AES256").encryption).toEqual({ algorithm: "AES256", kmsKeyId: null });
  const arn = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab";
  expect(place(`s3://b2b?kmsKeyId=${arn}`).encryption).toEqual({ algorithm: "aws:kms", kmsKeyId: arn });
  expect(place(`s3://b2b?sse=aws:kms:dsse&kmsKeyId=${arn}`).encryption).toEqual({ algorithm: "aws:kms:dsse", kmsKeyId: arn });
});

test.each([
  ["s3://b", "bucket"],
  ["s3://-bucket", "bucket"],
  ["s3://bu cket", "bucket"],
  ["s3://bucket//a", "prefix"],
  ["s3://bucket/../a", "prefix"],
  [`s3://bucket/${"a".repeat(257)}`, "prefix"],
  ["s3://bucket?region=", "region"],
  ["s3://bucket?region=eu%20west", "region"],
  ["s3://bucket?endpoint=127.0.0.1:9000", "endpoint"],
  ["s3://bucket?endpoint=ftp://h", "endpoint"],
  ["s3://bucket?pathStyle=1", "true or false"],
  ["s3://bucket?s3Express", "s3Express"],
  ["s3://bucket?sse=rot13", "AES256"],
  ["s3://bucket?sse=AES256&kmsKeyId=a", "kmsKeyId"],
  ["s3://bucket?kmsKeyId=a b", "kmsKeyId"],
])("%s is refused, with what is wrong", (text, word) => {
  expect(refusal(text)).toContain(word);
});

test.each([
  "s3://AK:topsecret@bucket",
  "s3://AK:top/secret@bucket?region=",
  "s3://bucket/AK:topsecret@a",
  "s3://bucket?endpoint=AK:topsecret@host",
])("no message about %s has the secret", (text) => {
  const message = refusal(text);
  expect(message).toContain("***");
  expect(message).not.toContain("secret");
});

test("a password in an endpoint is refused and shown nowhere", () => {
  const message = refusal("s3://bucket?endpoint=http://user:secret@host");
  expect(message).toContain("endpoint");
  expect(message).not.toContain("secret");
});

/**
 * Bucket URIs with the scheme `s3`: `s3://bucket[/prefix][?region=&endpoint=&pathStyle=&s3Express=&sse=&kmsKeyId=]`.
 *
 * Values are taken as written, unknown names are ignored. What is not said comes from the environment and the profile
 * (`AWS_*`), credentials always do.
 */
import { PicoError } from "../lib/errors.ts";
import { isObjectKey } from "../storage/object-key.ts";
import type { S3Encryption, S3Place } from "../storage/s3-place.ts";
import { type BucketUri, hideCredentials } from "./bucket-uri.ts";

/** A store's limit for keys is 1,024 bytes, ours 512. */
const PREFIX_BYTES_MAX = 256;
const BUCKET = /^[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]$/;
/** A directory bucket's name says so. */
const EXPRESS_BUCKET = /--x-s3$/;
const REGION = /^[A-Za-z0-9-]{1,64}$/;
const KMS_KEY = /^[A-Za-z0-9:/_.-]{1,2048}$/;
const ALGORITHMS: readonly S3Encryption["algorithm"][] = ["AES256", "aws:kms", "aws:kms:dsse"];

/** Throws `settings`, naming `flag`. */
export function s3PlaceFromUri(uri: BucketUri, flag: string): S3Place {
  const read = new ParameterReader(uri, flag);
  const [bucket = "", ...segments] = uri.path.split("/");
  if (uri.path.includes("@")) {
    throw read.refuse(
      "a bucket has no user and no password; leave out what is before the @, and give credentials by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    );
  }
  if (!BUCKET.test(bucket)) throw read.refuse(`${JSON.stringify(bucket)} is no name of a bucket; write s3://BUCKET or s3://BUCKET/PREFIX`);
  const prefix = segments.join("/").replace(/\/$/, "");
  if (prefix !== "" && (!isObjectKey(prefix) || prefix.length > PREFIX_BYTES_MAX)) {
    throw read.refuse(
      `the prefix ${JSON.stringify(prefix)} cannot be used; take segments of A-Z a-z 0-9 . _ - with / between, at most ${PREFIX_BYTES_MAX} bytes`,
    );
  }
  return {
    bucket,
    prefix: prefix === "" ? "" : `${prefix}/`,
    region: read.matching("region", REGION, "a region, for example eu-central-1"),
    endpoint: readEndpoint(read),
    isPathStyle: read.truth("pathStyle"),
    isExpress: read.truth("s3Express") ?? EXPRESS_BUCKET.test(bucket),
    encryption: readEncryption(read),
  };
}

function readEndpoint(read: ParameterReader): string | null {
  const text = read.text("endpoint");
  if (text === null) return null;
  const url = /^https?:\/\//i.test(text) && URL.canParse(text) ? new URL(text) : null;
  if (url === null || url.username !== "" || url.password !== "" || url.hash !== "") {
    throw read.refuseValue("endpoint", hideCredentials(text), "an address without a user, for example http://127.0.0.1:9000");
  }
  return text.replace(/\/+$/, "");
}

function readEncryption(read: ParameterReader): S3Encryption | null {
  const text = read.text("sse");
  const kmsKeyId = read.matching("kmsKeyId", KMS_KEY, "the id or ARN of a key");
  const algorithm = ALGORITHMS.find((known) => known === text);
  if (text !== null && algorithm === undefined) throw read.refuseValue("sse", text, ALGORITHMS.join(", "));
  if (algorithm === "AES256" && kmsKeyId !== null) throw read.refuse("sse=AES256 takes no kmsKeyId; leave one of them out");
  if (algorithm === undefined && kmsKeyId === null) return null;
  return { algorithm: algorithm ?? "aws:kms", kmsKeyId };
}

class ParameterReader {
  constructor(
    private readonly uri: BucketUri,
    private readonly flag: string,
  ) {}

  text(name: string): string | null {
    const text = this.uri.parameters.get(name);
    if (text === "") throw this.refuse(`its parameter ${name} is empty; give a value or leave it out`);
    return text ?? null;
  }

  matching(name: string, form: RegExp, what: string): string | null {
    const text = this.text(name);
    if (text !== null && !form.test(text)) throw this.refuseValue(name, text, what);
    return text;
  }

  truth(name: string): boolean | null {
    const text = this.text(name);
    if (text === null) return null;
    if (text !== "true" && text !== "false") throw this.refuseValue(name, text, "true or false");
    return text === "true";
  }

  refuseValue(name: string, text: string, remedy: string): PicoError {
    return this.refuse(`its parameter ${name} is ${JSON.stringify(text)}; give ${remedy}`);
  }

  refuse(what: string): PicoError {
    return new PicoError("settings", `${this.flag} ${hideCredentials(`s3://${this.uri.path}`)}: ${what}`, {
      flag: this.flag,
      isStartup: true,
    });
  }
}

/**
 * Signatures of requests about objects: AWS Signature Version 4 in headers
 * (https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html), for paths that need no escapes.
 *
 * The SDK's signer does the same for any request, and would be some 0.15 ms of each append to a bucket, a tenth of what
 * that costs on top of its PUT (`docs/benchmarks.md`). Tests hold this one to it, request by request.
 */
import type { Credentials } from "./s3-credentials.ts";

const ALGORITHM = "AWS4-HMAC-SHA256";

export interface SignableRequest {
  readonly method: string;
  /** With its port, where that is not the scheme's own. */
  readonly host: string;
  /** From its slash on: `A-Z a-z 0-9 . _ - ~ /`. No query. */
  readonly path: string;
  /** Names in lower case. All are signed. */
  readonly headers: Readonly<Record<string, string>>;
  /** Hex. */
  readonly bodySha256: string;
}

/** A key that signs one day's requests with one secret. */
interface DayKey {
  readonly credentials: Credentials;
  readonly day: string;
  readonly key: Uint8Array;
}

export class S3Signer {
  #dayKey: DayKey | null = null;

  constructor(
    private readonly region: string,
    private readonly service: string,
  ) {}

  /** The headers to send, those of the request included; `host` is left to whoever sends. `atMs`: the store's wall clock. */
  sign({ method, host, path, headers, bodySha256 }: SignableRequest, credentials: Credentials, atMs: number): Record<string, string> {
    const time = new Date(atMs).toISOString().replace(/[-:]|\.\d+/g, "");
    const day = time.slice(0, 8);
    const sent: Record<string, string> = { ...headers, "x-amz-content-sha256": bodySha256, "x-amz-date": time };
    if (credentials.sessionToken !== undefined) sent["x-amz-security-token"] = credentials.sessionToken;

    const names = [...Object.keys(sent), "host"].sort();
    let canonicalHeaders = "";
    for (const name of names) canonicalHeaders += `${name}:${name === "host" ? host : canonicalValue(sent[name] ?? "")}\n`;
    const signedNames = names.join(";");
    const canonicalRequest = `${method}\n${path}\n\n${canonicalHeaders}\n${signedNames}\n${bodySha256}`;
    const scope = `${day}/${this.region}/${this.service}/aws4_request`;
    const signature = hmac(this.#keyOf(credentials, day), `${ALGORITHM}\n${time}\n${scope}\n${sha256Hex(canonicalRequest)}`).toHex();
    sent.authorization = `${ALGORITHM} Credential=${credentials.accessKeyId}/${scope}, SignedHeaders=${signedNames}, Signature=${signature}`;
    return sent;
  }

  #keyOf(credentials: Credentials, day: string): Uint8Array {
    if (this.#dayKey?.credentials === credentials && this.#dayKey.day === day) return this.#dayKey.key;
    const parts = [day, this.region, this.service, "aws4_request"];
    const key = parts.reduce<Uint8Array | string>(hmac, `AWS4${credentials.secretAccessKey}`) as Uint8Array;
    this.#dayKey = { credentials, day, key };
    return key;
  }
}

/** Blanks around are no part of a value, several inside count as one. */
function canonicalValue(value: string): string {
  return value.trim().replace(/\s+/g, " ");
}

function hmac(key: Uint8Array | string, text: string): Uint8Array {
  return new Bun.CryptoHasher("sha256", key).update(text).digest();
}

function sha256Hex(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("hex");
}

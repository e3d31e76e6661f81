/** Our signatures against those of the SDK's signer. */
import { expect, test } from "bun:test";
import { SignatureV4 } from "@smithy/signature-v4";
import { EMPTY_SHA256 } from "../../src/storage/s3-sha256.ts";
import { S3Signer, type SignableRequest } from "../../src/storage/s3-signature.ts";
import { SeededRandom } from "../support/seeded-random.ts";

const NAMES = ["if-none-match", "content-type", "range", "x-amz-meta-pico-create", "x-amz-server-side-encryption", "x-amz-s3session-token"];
const VALUES = ["*", "application/octet-stream", "bytes=0-1048575", "  two  words ", "a\ttab", "ä", "x".repeat(300), "AES256"];
const METHODS = ["GET", "HEAD", "PUT", "DELETE"];
const HOSTS = ["bucket.s3.eu-central-1.amazonaws.com", "127.0.0.1:9000", "[::1]:9000"];
const DAY_MS = 86_400_000;

class OtherHash {
  readonly #hasher: Bun.CryptoHasher;

  constructor(secret?: unknown) {
    this.#hasher = secret === undefined ? new Bun.CryptoHasher("sha256") : new Bun.CryptoHasher("sha256", secret as Uint8Array);
  }

  update(bytes: Uint8Array): void {
    this.#hasher.update(bytes);
  }

  async digest(): Promise<Uint8Array> {
    return this.#hasher.digest();
  }

  reset(): void {
    throw new Error("a hash serves once");
  }
}

test("every request is signed as the SDK's signer signs it", async () => {
  const random = new SeededRandom(11);
  const region = "eu-central-1";
  for (const service of ["s3", "s3express"]) {
    const signer = new S3Signer(region, service);
    for (let round = 0; round < 400; round++) {
      const credentials = {
        accessKeyId: `AKIA${round % 3}`,
        secretAccessKey: `secret/+${round % 5}`,
        ...(random.below(2) === 0 ? {} : { sessionToken: "token/+==" }),
      };
      const request: SignableRequest = {
        method: random.pick(METHODS),
        host: random.pick(HOSTS),
        path: `/b/pre.fix_-~/${random.below(1e9)}/k`,
        headers: Object.fromEntries(NAMES.filter(() => random.below(2) === 0).map((name) => [name, random.pick(VALUES)])),
        bodySha256: random.below(2) === 0 ? EMPTY_SHA256 : new Bun.CryptoHasher("sha256").update(String(round)).digest("hex"),
      };
      // Over the ends of days and years.
      const atMs = 1_796_000_000_000 + random.below(400) * DAY_MS + random.below(DAY_MS);
      const ours = signer.sign(request, credentials, atMs);
      expect(ours).toEqual(await signedBySdk(request, { region, service, credentials, atMs }));
      // By the key that is kept now.
      expect(signer.sign(request, credentials, atMs)).toEqual(ours);
      const nextDayMs = atMs + DAY_MS;
      expect(signer.sign(request, credentials, nextDayMs)).toEqual(
        await signedBySdk(request, { region, service, credentials, atMs: nextDayMs }),
      );
    }
  }
});

interface SdkOptions {
  readonly region: string;
  readonly service: string;
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
  readonly atMs: number;
}

async function signedBySdk({ method, host, path, headers, bodySha256 }: SignableRequest, options: SdkOptions) {
  const { region, service, credentials, atMs } = options;
  const sdk = new SignatureV4({ service, region, credentials, sha256: OtherHash, uriEscapePath: false, applyChecksum: true });
  const request = {
    method,
    protocol: "https:",
    hostname: host,
    path,
    query: {},
    headers: { host, "x-amz-content-sha256": bodySha256, ...headers },
  };
  const { host: _, ...sent } = (await sdk.sign(request, { signingDate: new Date(atMs) })).headers;
  return sent;
}

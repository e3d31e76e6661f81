/** SHA-256 as the signatures of S3 need it, by the runtime. */
import { KIB } from "../lib/limits.ts";

/** Bodies beyond this are hashed in a thread of the runtime. */
const HASHED_HERE_BYTES_MAX = 512 * KIB;

export const EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/** SHA-256 in hex. A large body is hashed beside the event loop. */
export async function hashBody(body: Uint8Array): Promise<string> {
  if (body.length <= HASHED_HERE_BYTES_MAX) return new Bun.CryptoHasher("sha256").update(body).digest("hex");
  return new Uint8Array(await crypto.subtle.digest("SHA-256", body as Uint8Array<ArrayBuffer>)).toHex();
}

/** The form that the signer asks for. */
export class Sha256 {
  readonly #hasher: Bun.CryptoHasher;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hasher = secret === undefined ? new Bun.CryptoHasher("sha256") : new Bun.CryptoHasher("sha256", secret as Uint8Array);
  }

  update(bytes: Uint8Array): void {
    this.#hasher.update(bytes);
  }

  async digest(): Promise<Uint8Array> {
    return this.#hasher.digest();
  }

  reset(): void {
    throw new Error("the signer makes a hash for each use");
  }
}

/** SHA-256 of bodies, as signatures need it, by the runtime. */
import { KIB } from "../lib/limits.ts";

/** Bodies beyond this are hashed in a thread of the runtime. */
const HASHED_HERE_BYTES_MAX = 512 * KIB;

export const EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/** SHA-256 in hex. A large body is hashed beside the event loop. */
export async function hashBody(body: Uint8Array): Promise<string> {
  if (body.length <= HASHED_HERE_BYTES_MAX) return new Bun.CryptoHasher("sha256").update(body).digest("hex");
  return new Uint8Array(await crypto.subtle.digest("SHA-256", body as Uint8Array<ArrayBuffer>)).toHex();
}

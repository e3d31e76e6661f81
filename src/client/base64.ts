/** Standard base64 (RFC 4648, 4) by what every runtime has: `Uint8Array.fromBase64` is not in all of them yet. */
import { malformed } from "./stream-error.ts";

/** Throws `malformed_answer` for what is none. */
export function decodeBase64(text: string): Uint8Array {
  let binary: string;
  try {
    binary = atob(text);
  } catch (error) {
    throw malformed("the answer holds a base64 text that is none", error);
  }
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

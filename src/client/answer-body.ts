/** Bodies of answers: read whole within a bound, or given up. */
import { concatBytes, EMPTY_BYTES } from "../lib/bytes.ts";
import { malformed } from "./stream-error.ts";

/** The whole body. Throws `malformed_answer` beyond `bytesMax`, and whatever the network throws if it is cut. */
export async function readWhole(response: Response, bytesMax: number): Promise<Uint8Array> {
  const reader = response.body?.getReader();
  if (reader === undefined) return EMPTY_BYTES;
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : concatBytes(chunks);
    size += value.length;
    if (size > bytesMax) {
      giveUp(reader.cancel());
      throw malformed(`the answer has more than ${bytesMax} bytes, which is what the client takes`);
    }
    chunks.push(value);
  }
}

/** The beginning of a body, as text for a person. */
export async function readBeginning(response: Response, bytesMax: number): Promise<string> {
  const reader = response.body?.getReader();
  if (reader === undefined) return "";
  const decoder = new TextDecoder();
  let text = "";
  for (let size = 0; size < bytesMax; ) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    size += value.length;
    text += decoder.decode(value, { stream: true });
  }
  giveUp(reader.cancel());
  return text;
}

/** Lets the connection go of a body that nobody reads. */
export function discard(response: Response): void {
  if (response.body !== null) giveUp(response.body.cancel());
}

/** What is given up may fail as it likes. */
function giveUp(cancelled: Promise<void>): void {
  cancelled.catch(() => undefined);
}

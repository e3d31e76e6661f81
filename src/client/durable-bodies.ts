/** Records of a JSON batch as one body of Durable Streams. */

const OPEN = 0x5b;
const COMMA = 0x2c;
const CLOSE = 0x5d;

/** A JSON array of JSON texts: the server makes a record of each (9.1). */
export function joinJson(texts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const size = texts.reduce((sum, bytes) => sum + bytes.length + 1, 1);
  const whole = new Uint8Array(size);
  let at = 0;
  for (const bytes of texts) {
    whole[at] = at === 0 ? OPEN : COMMA;
    whole.set(bytes, at + 1);
    at += bytes.length + 1;
  }
  whole[at] = CLOSE;
  return whole;
}

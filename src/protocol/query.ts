/**
 * Query strings as the Pico protocol reads them (1.3): split on `&`, then on the first `=`; the first
 * occurrence of a key wins; keys are compared undecoded and case-sensitively; in values `+` is a space,
 * a malformed escape stays as it is, and invalid UTF-8 becomes U+FFFD.
 */

const lossyDecoder = new TextDecoder("utf-8", { ignoreBOM: true });

export class QueryParameters {
  /** As sent, without the question mark. */
  readonly raw: string;
  readonly #values = new Map<string, string>();
  readonly #repeated = new Set<string>();

  constructor(raw: string) {
    this.raw = raw;
    if (raw === "") return;
    for (const pair of raw.split("&")) {
      if (pair === "") continue;
      const equals = pair.indexOf("=");
      const key = equals < 0 ? pair : pair.slice(0, equals);
      if (this.#values.has(key)) {
        this.#repeated.add(key);
        continue;
      }
      this.#values.set(key, equals < 0 ? "" : decodeQueryValue(pair.slice(equals + 1)));
    }
  }

  /** The first value; "" for a key without one; undefined where the key is absent. */
  get(key: string): string | undefined {
    return this.#values.get(key);
  }

  isRepeated(key: string): boolean {
    return this.#repeated.has(key);
  }

  /** The first values of these keys, absent ones left out: what a schema checks. */
  pick(keys: readonly string[]): Record<string, string> {
    const picked: Record<string, string> = {};
    for (const key of keys) {
      const value = this.#values.get(key);
      if (value !== undefined) picked[key] = value;
    }
    return picked;
  }
}

export const NO_QUERY = new QueryParameters("");

function decodeQueryValue(raw: string): string {
  const spaced = raw.includes("+") ? raw.replaceAll("+", " ") : raw;
  if (!spaced.includes("%")) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    return decodeLossily(spaced);
  }
}

/** Byte by byte: escapes that are whole become bytes, everything else is taken as it is. */
function decodeLossily(text: string): string {
  const source = Buffer.from(text, "utf8");
  const bytes = new Uint8Array(source.length);
  let length = 0;
  for (let i = 0; i < source.length; i++) {
    const byte = source[i] ?? 0;
    const high = byte === 0x25 ? hexValue(source[i + 1]) : -1;
    const low = byte === 0x25 ? hexValue(source[i + 2]) : -1;
    if (high >= 0 && low >= 0) {
      bytes[length++] = high * 16 + low;
      i += 2;
    } else {
      bytes[length++] = byte;
    }
  }
  return lossyDecoder.decode(bytes.subarray(0, length));
}

function hexValue(code: number | undefined): number {
  if (code === undefined) return -1;
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** Points in time on the wire: RFC 3339 (https://www.rfc-editor.org/rfc/rfc3339#section-5.6), from 1970 to 9999. */
import { parseStrictU64 } from "./integers.ts";

const INSTANT = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,100}))?(Z|[+-]\d{2}:\d{2})$/;
/** The last millisecond of the year 9999. */
const INSTANT_MS_MAX = 253_402_300_799_999;

/** Milliseconds since 1970 of an instant in UTC, `...Z`, or in plain unix milliseconds (Pico 1.4); null for anything else. */
export function parsePicoInstant(text: string): number | null {
  const unixMs = parseStrictU64(text);
  if (unixMs !== null) return unixMs > BigInt(INSTANT_MS_MAX) ? null : Number(unixMs);
  return text.endsWith("Z") ? parseInstant(text) : null;
}

/** Milliseconds since 1970 of an instant with `Z` or a numeric offset; finer fractions are cut. Null for anything else. */
export function parseInstant(text: string): number | null {
  const match = INSTANT.exec(text);
  if (match === null) return null;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number);
  if (year === undefined || month === undefined || day === undefined) return null;
  if (hour === undefined || minute === undefined || second === undefined) return null;
  if (hour > 23 || minute > 59 || second > 59) return null;
  const offsetMs = parseOffset(match[8] ?? "");
  if (offsetMs === null) return null;
  const fractionMs = Number((match[7] ?? "").padEnd(3, "0").slice(0, 3));
  const localMs = Date.UTC(year, month - 1, day, hour, minute, second, fractionMs);
  // `Date.UTC` carries days over (February 30th) and takes years below 100 for those of the 20th century.
  const calendar = new Date(localMs);
  const isSame = calendar.getUTCFullYear() === year && calendar.getUTCMonth() === month - 1 && calendar.getUTCDate() === day;
  const ms = localMs - offsetMs;
  return isSame && ms >= 0 && ms <= INSTANT_MS_MAX ? ms : null;
}

/** `2100-01-01T00:00:00Z`; exactly three digits of fraction unless it is a whole second. */
export function formatInstant(ms: number): string {
  const text = new Date(ms).toISOString();
  return ms % 1000 === 0 ? `${text.slice(0, -5)}Z` : text;
}

function parseOffset(text: string): number | null {
  if (text === "Z") return 0;
  const hours = Number(text.slice(1, 3));
  const minutes = Number(text.slice(4, 6));
  if (hours > 23 || minutes > 59) return null;
  return (text.startsWith("-") ? -1 : 1) * (hours * 60 + minutes) * 60_000;
}

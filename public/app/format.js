/** Numbers, sizes and times as people read them; one form for each, everywhere. */

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const clockTime = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const dayAndTime = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

export const NOTHING = "–";

export function formatCount(value) {
  return isNumber(value) ? whole.format(value) : NOTHING;
}

/** At most four characters and a letter: `950`, `1.25k`, `18.3M`. */
export function formatCompact(value) {
  if (!isNumber(value)) return NOTHING;
  const units = ["", "k", "M", "G", "T"];
  let at = 0;
  let rest = Math.abs(value);
  while (rest >= 999.5 && at < units.length - 1) {
    rest /= 1000;
    at += 1;
  }
  return `${value < 0 ? "-" : ""}${threeDigits(rest)}${units[at]}`;
}

export function formatBytes(value) {
  if (!isNumber(value)) return NOTHING;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  let rest = value;
  while (rest >= 999.5 && at < units.length - 1) {
    rest /= 1024;
    at += 1;
  }
  return `${threeDigits(rest)} ${units[at]}`;
}

/** A latency or another span, from microseconds to days. */
export function formatSpan(ms) {
  if (!isNumber(ms)) return NOTHING;
  if (ms === 0) return "0 ms";
  if (ms < 1) return `${threeDigits(ms * 1000)} µs`;
  if (ms < 999.5) return `${threeDigits(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 59.95) return `${threeDigits(seconds)} s`;
  return longSpan(Math.round(seconds));
}

/** `just now`, `12 s ago`, `3 min ago`: whole seconds, since the eye follows it while it counts. */
export function formatAge(ms) {
  if (!isNumber(ms)) return NOTHING;
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 1) return "just now";
  return `${seconds < 60 ? `${seconds} s` : longSpan(seconds)} ago`;
}

/** A lifetime in seconds, which may be beyond what numbers hold exactly. */
export function formatLifetime(seconds) {
  const value = Number(seconds);
  return value < 60 ? `${value} s` : longSpan(value);
}

export function formatClock(ms) {
  return isNumber(ms) && ms > 0 ? clockTime.format(ms) : NOTHING;
}

export function formatInstant(ms) {
  return isNumber(ms) && ms > 0 ? dayAndTime.format(ms) : NOTHING;
}

export function formatPercent(share) {
  const percent = share * 100;
  if (percent > 0 && percent < 0.05) return "< 0.1 %";
  return `${percent > 0 && percent < 0.95 ? percent.toFixed(1) : Math.round(percent)} %`;
}

/** `1 record`, `2 records`. */
export function formatNumberOf(count, word) {
  return `${formatCount(count)} ${word}${count === 1 ? "" : "s"}`;
}

function longSpan(seconds) {
  const parts = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor((seconds % 86_400) / 3600), "h"],
    [Math.floor((seconds % 3600) / 60), "min"],
    [seconds % 60, "s"],
  ];
  const first = parts.findIndex(([value]) => value > 0);
  const shown = parts.slice(first, first + 2).filter(([value]) => value > 0);
  return shown.map(([value, unit]) => `${formatCount(value)} ${unit}`).join(" ");
}

function threeDigits(value) {
  if (value >= 99.95 || Number.isInteger(value)) return whole.format(value);
  // `1.5`, not `1.50`.
  return String(Number(value.toFixed(value >= 9.995 ? 1 : 2)));
}

function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

/** How the dashboard words a comparison of store and metadata. */
import { formatCount, formatInstant } from "./format.js";

/** What the last comparison of store and metadata found; the node that runs maintenance does one a day. */
export function scrubWords(scrub) {
  if (scrub === null) return "none by this node since its start";
  const { endedAtMs, outcome, missing, damaged, orphans, unexplained } = scrub;
  if (endedAtMs === null) return "under way";
  const counts = [
    [missing, "missing"],
    [damaged, "damaged"],
    [unexplained, "unexplained"],
    [orphans, "nobody's"],
  ];
  const found = counts.filter(([count]) => count > 0).map(([count, word]) => `${formatCount(count)} ${word}`);
  const words = { sound: "sound", damage: "data objects are lost", failed: "not finished" }[outcome];
  return [`${formatInstant(endedAtMs)}: ${words}`, ...found].join(", ");
}

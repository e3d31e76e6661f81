/** Counts of tests: read from the reports of test runners, added up, and put into words. */

export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export const NO_COUNTS: Counts = { passed: 0, failed: 0, skipped: 0 };

export function addCounts(left: Counts, right: Counts): Counts {
  return { passed: left.passed + right.passed, failed: left.failed + right.failed, skipped: left.skipped + right.skipped };
}

/** `3 passed, 0 failed`, and `, 1 skipped` only if any. */
export function formatCounts(counts: Counts): string {
  const skipped = counts.skipped === 0 ? "" : `, ${counts.skipped} skipped`;
  return `${counts.passed} passed, ${counts.failed} failed${skipped}`;
}

/** The totals of a JUnit report's root element; null where the text is no such report. */
export function readJunitCounts(xml: string): Counts | null {
  const root = /<testsuites\b[^>]*>/.exec(xml)?.[0];
  if (root === undefined) return null;
  const tests = readAttribute(root, "tests");
  const failures = readAttribute(root, "failures");
  const errors = readAttribute(root, "errors") ?? 0;
  const skipped = readAttribute(root, "skipped");
  if (tests === null || failures === null || skipped === null) return null;
  const failed = failures + errors;
  return { passed: tests - failed - skipped, failed, skipped };
}

/** `{"passed": N, "failed": N, "skipped": N}`; null for anything else. */
export function readJsonCounts(text: string): Counts | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null) return null;
  const { passed, failed, skipped } = value as Record<string, unknown>;
  if (!isCount(passed) || !isCount(failed) || !isCount(skipped)) return null;
  return { passed, failed, skipped };
}

function readAttribute(element: string, name: string): number | null {
  const text = new RegExp(`\\b${name}="(\\d+)"`).exec(element)?.[1];
  return text === undefined ? null : Number(text);
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

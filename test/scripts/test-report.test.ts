import { expect, test } from "bun:test";
import { addCounts, formatCounts, readJsonCounts, readJunitCounts } from "../../scripts/test-report.ts";

test("a JUnit report gives passed, failed and skipped", () => {
  const xml =
    '<?xml version="1.0"?>\n<testsuites name="bun test" tests="10" assertions="30" failures="2" skipped="3" time="0.1">\n</testsuites>';
  expect(readJunitCounts(xml)).toEqual({ passed: 5, failed: 2, skipped: 3 });
});

test("a text that is no JUnit report has no counts", () => {
  expect(readJunitCounts("")).toBeNull();
  expect(readJunitCounts('<testsuites name="cut off"')).toBeNull();
  expect(readJunitCounts('<testsuites tests="x" failures="0" skipped="0">')).toBeNull();
});

test("a report with a missing, negative or fractional count has no counts", () => {
  expect(readJsonCounts('{"passed":1,"failed":0,"skipped":0}')).toEqual({ passed: 1, failed: 0, skipped: 0 });
  for (const text of [
    "",
    "null",
    "[]",
    '{"passed":1,"failed":0}',
    '{"passed":-1,"failed":0,"skipped":0}',
    '{"passed":0.5,"failed":0,"skipped":0}',
  ]) {
    expect(readJsonCounts(text)).toBeNull();
  }
});

test("the closing line names skipped tests only where there are some", () => {
  expect(formatCounts({ passed: 3, failed: 0, skipped: 0 })).toBe("3 passed, 0 failed");
  expect(formatCounts(addCounts({ passed: 3, failed: 0, skipped: 1 }, { passed: 1, failed: 2, skipped: 0 }))).toBe(
    "4 passed, 2 failed, 1 skipped",
  );
});

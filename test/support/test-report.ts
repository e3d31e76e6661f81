/** Counts of a suite that runs as a program, for whoever runs it as a step of a tier. */
import { writeFileSync } from "node:fs";

/** Prints the closing line, and writes the counts to the file that `PICO_TEST_REPORT` names. Returns the exit code. */
export function closeSuite(passed: number, failed: number, skipped = 0): number {
  console.log(`${passed} passed, ${failed} failed${skipped === 0 ? "" : `, ${skipped} skipped`}`);
  const reportPath = process.env.PICO_TEST_REPORT;
  if (reportPath !== undefined) writeFileSync(reportPath, JSON.stringify({ passed, failed, skipped }));
  return failed === 0 ? 0 : 1;
}

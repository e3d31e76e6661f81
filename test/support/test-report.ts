/** Counts of a suite that runs as a program, for whoever runs it as a step of a tier. */
import { writeFileSync } from "node:fs";

/** What is shown of a part that went wrong in many ways. */
const PROBLEMS_SHOWN = 20;

/** Counts the parts of a suite that has one verdict for each, and prints what is wrong with those that failed. */
export class SuiteVerdicts {
  #passed = 0;
  #failed = 0;

  get failed(): number {
    return this.#failed;
  }

  /** No problems: passed. */
  judge(name: string, problems: readonly string[]): void {
    if (problems.length === 0) {
      this.#passed += 1;
      return;
    }
    this.#failed += 1;
    console.log(`FAILED ${name}: ${problems.length} ${problems.length === 1 ? "problem" : "problems"}`);
    for (const problem of problems.slice(0, PROBLEMS_SHOWN)) console.log(`  ${problem}`);
  }

  /** As `closeSuite`. */
  close(): number {
    return closeSuite(this.#passed, this.#failed);
  }
}

/** Prints the closing line, and writes the counts to the file that `PICO_TEST_REPORT` names. Returns the exit code. */
export function closeSuite(passed: number, failed: number, skipped = 0): number {
  console.log(`${passed} passed, ${failed} failed${skipped === 0 ? "" : `, ${skipped} skipped`}`);
  const reportPath = process.env.PICO_TEST_REPORT;
  if (reportPath !== undefined) writeFileSync(reportPath, JSON.stringify({ passed, failed, skipped }));
  return failed === 0 ? 0 : 1;
}

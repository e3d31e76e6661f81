/** For suites that run as programs, where `bun:test` is not to be had. */
import { POSTGRES_MISSING } from "../../scripts/postgres.ts";
import { closeSuite } from "./test-report.ts";

/** Ends a suite that found no Postgres: a failure where `CI` is set, else a skip with its reason. Returns the exit code. */
export function closeWithoutPostgres(): number {
  const isRequired = process.env.CI !== undefined;
  console.log(`${isRequired ? "required here" : "skipped"}: ${POSTGRES_MISSING}`);
  return closeSuite(0, isRequired ? 1 : 0, isRequired ? 0 : 1);
}

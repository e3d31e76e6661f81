import { expect, test } from "bun:test";
import { POSTGRES_FAILOVER_CALL_MS, SQL_CALL_TIMEOUT_MS } from "../../src/lib/limits.ts";
import { PostgresPatience } from "../../src/sql/postgres-patience.ts";

test("patience doubles with each silence up to that of any call, and an answer ends it", () => {
  const patience = new PostgresPatience();
  const seen = [patience.ms];
  for (let silences = 0; silences < 4; silences++) {
    patience.noteSilence();
    seen.push(patience.ms);
  }
  const first = POSTGRES_FAILOVER_CALL_MS;
  expect(seen).toEqual([first, 2 * first, 4 * first, SQL_CALL_TIMEOUT_MS, SQL_CALL_TIMEOUT_MS]);
  patience.noteAnswer();
  expect(patience.ms).toBe(first);
});

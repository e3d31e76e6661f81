/** The page of errors says what the server does: an entry a code, and the statuses of each. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { WIRE_ERRORS } from "../../src/protocol/error-table.ts";

const root = dirname(dirname(import.meta.dir));
const page = readFileSync(join(root, "docs/errors.md"), "utf8");
const entries = page.split(/^### /m).slice(1);

test("every error code has one entry on the page, and no entry is of an unknown code", () => {
  const named = entries.map((entry) => /^`([a-z_]+)`\n/.exec(entry)?.[1]);
  expect(named.toSorted()).toEqual(Object.keys(WIRE_ERRORS).toSorted());
});

test("every entry has the statuses that both listeners send, a meaning, a cause and a remedy", () => {
  const wrong: string[] = [];
  for (const entry of entries) {
    const code = /^`([a-z_]+)`/.exec(entry)?.[1] ?? "";
    const wire = Object.entries(WIRE_ERRORS).find(([known]) => known === code)?.[1];
    const line = `\nPico: ${wire?.status} \`${wire?.code}\`. Durable Streams: ${wire?.status}.\n`;
    const isWhole = ["*Meaning:*", "*Cause:*", "*Remedy:*"].every((part) => entry.includes(`\n${part} `));
    if (!entry.includes(line) || !isWhole) wrong.push(code);
  }
  expect(wrong).toEqual([]);
});

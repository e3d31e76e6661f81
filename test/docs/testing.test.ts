/** The page on testing names files that exist, and each known fault once. */
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const root = dirname(dirname(import.meta.dir));
const page = readFileSync(join(root, "docs/testing.md"), "utf8");

test("every file that the page on testing names is there", () => {
  const named = [...page.matchAll(/`([a-z][\w./-]*\.(?:ts|md))`/g)].map(([, path = ""]) => path);
  expect(named.length).toBeGreaterThan(50);
  const places = ["test", ".", "test/engine/golden"];
  expect(named.filter((path) => !places.some((place) => existsSync(join(root, place, path))))).toEqual([]);
});

test("every row of the known faults has an id of its own, a source and a place", () => {
  const rows = page.split("\n## Known faults\n")[1]?.match(/^\| [A-Z]\d+ \|.*$/gm) ?? [];
  const ids = rows.map((row) => row.split("|")[1]?.trim());
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.length).toBeGreaterThanOrEqual(90);
  const incomplete = rows.filter((row) => row.split(" | ").length !== 4 || row.split(" | ").some((cell) => cell.trim().length < 2));
  expect(incomplete).toEqual([]);
});

/** Whose code is in the executable, and under which licences. */
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const root = dirname(dirname(import.meta.dir));
const PERMISSIVE = ["0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BlueOak-1.0.0", "ISC", "MIT", "Unlicense"];

interface Manifest {
  readonly name: string;
  readonly license?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
}

/** Where a package that `folder` needs lies: beside it, or further up. */
function folderOf(name: string, folder: string): string {
  for (let at = folder; at.startsWith(root); at = dirname(at)) {
    const candidate = join(at, "node_modules", name);
    if (existsSync(join(candidate, "package.json"))) return candidate;
  }
  throw new Error(`${name} is not installed`);
}

test("the page of dependencies lists those of the executable with their licences", () => {
  const page = readFileSync(join(root, "docs/dependencies.md"), "utf8");
  const listed = [...page.matchAll(/^\| `([^`]+)` \| ([^|]+) \|/gm)].map(([, name, licence]) => `${name} ${licence}`);
  const names = Object.keys(readManifest(root).dependencies ?? {});
  expect(listed).toEqual(names.map((name) => `${name} ${readManifest(folderOf(name, root)).license}`));
});

test("everything that they bring along is under a permissive licence", () => {
  const seen = new Map<string, string>();
  const visit = (folder: string) => {
    for (const name of Object.keys(readManifest(folder).dependencies ?? {})) {
      const place = folderOf(name, folder);
      if (seen.has(place)) continue;
      seen.set(place, readManifest(place).license ?? "none");
      visit(place);
    }
  };
  visit(root);
  expect(seen.size).toBeGreaterThan(30);
  expect([...seen].filter(([, licence]) => !PERMISSIVE.includes(licence))).toEqual([]);
});

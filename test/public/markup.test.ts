/**
 * Rules about the dashboard's sources that keep what people stored from becoming markup or script, and the
 * page from reaching for anything elsewhere. Real pages are held to them in `test/browser`.
 */
import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { PACKAGE_FILES } from "../../src/storage/shipped-files.ts";

const root = dirname(dirname(import.meta.dir));
const folder = join(root, "public");

/** Our own files by path; the explorer of the API lies in `docs`. */
const sources: ReadonlyMap<string, string> = new Map(
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter((path) => !path.startsWith("docs/"))
    .map((path) => [path, readFileSync(join(folder, path), "utf8")]),
);

const shipped: ReadonlySet<string> = new Set(PACKAGE_FILES.map(({ path }) => path));

function filesWith(pattern: RegExp, ending: RegExp): string[] {
  return [...sources].flatMap(([path, text]) => {
    const found = ending.test(path) ? pattern.exec(text)?.[0] : undefined;
    return found === undefined ? [] : [`${path}: ${found}`];
  });
}

test("no script makes markup out of text, or code out of data", () => {
  const makers =
    /innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|setHTML|\beval\(|new Function\b/;
  expect(sources.size).toBeGreaterThan(20);
  expect(filesWith(makers, /\.js$/)).toEqual([]);
});

test("no page has inline scripts, handlers or styles", () => {
  expect(filesWith(/<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+\s*=|javascript:/i, /\.(html|svg)$/)).toEqual([]);
  // In scripts, too, styles are classes; the one variable that a meter sets goes through the object model.
  expect(filesWith(/\bstyle=|cssText|setAttribute\("(style|on\w+)"/, /\.js$/)).toEqual([]);
});

test("nothing is named that lies on another host", () => {
  const local = /https?:\/\/(?!127\.0\.0\.1:|www\.w3\.org\/2000\/svg")[^\s"'`)]*|["'(]\/\/[a-z]/;
  expect(filesWith(local, /\.(html|js|css|svg)$/)).toEqual([]);
});

test("every script and style that is named is there", () => {
  for (const [path, text] of sources) {
    const named = path.endsWith(".js")
      ? [...text.matchAll(/from "(\.[^"]+)"/g)].map(([, file = ""]) => join(dirname(path), file))
      : [...text.matchAll(/(?:href|src)="([^"#]+\.\w+)"/g)].map(([, file = ""]) => join(dirname(path), file));
    for (const file of named) expect({ path, file, isThere: sources.has(file) || shipped.has(file) }).toMatchObject({ isThere: true });
  }
});

test("what ships of packages is there, with a licence beside each", () => {
  for (const { source } of PACKAGE_FILES)
    expect({ source, isThere: existsSync(join(root, "node_modules", source)) }).toMatchObject({ isThere: true });
  const packages = new Set(PACKAGE_FILES.map(({ source }) => source.split("/")[0]));
  for (const name of packages) expect(PACKAGE_FILES.map(({ source }) => source)).toContain(`${name}/LICENSE`);
});

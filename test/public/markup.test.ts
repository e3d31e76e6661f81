/**
 * Rules about the dashboard's sources that keep what people stored from becoming markup or script, and the
 * page from reaching for anything elsewhere. Real pages are held to them in `test/browser`.
 */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const root = dirname(dirname(import.meta.dir));
const folder = join(root, "public");

/** Our own files by path; libraries that are kept as they are lie in `assets`, the explorer of the API in `docs`. */
const sources: ReadonlyMap<string, string> = new Map(
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter((path) => !path.startsWith("assets/") && !path.startsWith("docs/"))
    .map((path) => [path, readFileSync(join(folder, path), "utf8")]),
);

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
    for (const file of named)
      expect({ path, file, isThere: sources.has(file) || file.startsWith("assets/") }).toMatchObject({ isThere: true });
  }
});

test("the charts' library is the one of the package, and carries its licence", () => {
  const version = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).dependencies.uplot as string;
  const pairs = [
    [`uPlot-${version}.iife.min.js`, "dist/uPlot.iife.min.js"],
    [`uPlot-${version}.min.css`, "dist/uPlot.min.css"],
    [`uPlot-${version}.LICENSE.txt`, "LICENSE"],
  ] as const;
  for (const [kept, original] of pairs) {
    const same = readFileSync(join(folder, "assets", kept)).equals(readFileSync(join(root, "node_modules/uplot", original)));
    expect({ kept, same, remedy: `copy node_modules/uplot/${original} to public/assets/${kept}` }).toMatchObject({ same: true });
    if (!kept.endsWith("LICENSE.txt")) expect(sources.get("index.html")).toContain(`assets/${kept}`);
  }
});

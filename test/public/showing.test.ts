/** How the dashboard words what it shows: bodies, numbers, addresses. The modules are those that browsers load. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";

const app = join(import.meta.dir, "../../public/app");
const { indentJson, layOut, previewOf, sizeOf } = await import(join(app, "record-body.js"));
const { formatAge, formatBytes, formatCompact, formatLifetime, formatPercent, formatSpan } = await import(join(app, "format.js"));
const { scrubWords } = await import(join(app, "scrub-words.js"));
const { parseOffset, parseRoute, streamHref } = await import(join(app, "routes.js"));

describe("JSON is indented without a change to what it says", () => {
  const cases = [
    ['{"a":12345678901234567890,"b":1e400,"c":1.10}', '{\n  "a": 12345678901234567890,\n  "b": 1e400,\n  "c": 1.10\n}'],
    ['{"z":1,"a":{},"l":[]}', '{\n  "z": 1,\n  "a": {},\n  "l": []\n}'],
    ["[ [ ] , [1 , true,null] ]", "[\n  [],\n  [\n    1,\n    true,\n    null\n  ]\n]"],
    ['"{\\"not\\":[\\\\,]}"', '"{\\"not\\":[\\\\,]}"'],
    ['{"k{":"[,]:{}"}', '{\n  "k{": "[,]:{}"\n}'],
    ["-0.5", "-0.5"],
  ];
  for (const [text, indented] of cases) test(`${text}`, () => expect(indentJson(text)).toBe(indented));

  test("what is no JSON stays as it is, and that is said", () => {
    expect(indentJson("{a:1}")).toBeNull();
    expect(layOut({ body: "{a:1}" }, "json")).toEqual({ text: "{a:1}", note: "The body is not JSON; it is shown as text.", isHex: false });
  });
});

describe("bodies", () => {
  test("bytes that are no text are laid out as hex, with their size", () => {
    const record = { body_b64: Buffer.from([0, 255, 65]).toString("base64") };
    expect(sizeOf(record)).toBe(3);
    expect(layOut(record, "text")).toEqual({
      text: `00000000  ${"00 ff 41".padEnd(48)} ··A`,
      note: "The body is not UTF-8 text.",
      isHex: true,
    });
  });

  test("a large body is cut, and that is said", () => {
    const { text, note } = layOut({ body: "x".repeat(100_000) }, "text");
    expect(text).toHaveLength(32_768);
    expect(note).toContain("100,000");
    const hex = layOut({ body_b64: Buffer.alloc(100_000).toString("base64") }, "hex");
    expect(hex.text.split("\n")).toHaveLength(256);
    expect(hex.note).toContain("100,000");
  });

  test("no body, an empty one and lines are told apart", () => {
    expect(layOut({ body: null }, "text").note).toBe("This record has no body (null).");
    expect(layOut({ body: "" }, "text")).toEqual({ text: "", note: null, isHex: false });
    expect(previewOf({ body: "two\n  lines" })).toBe("two lines");
    expect(sizeOf({ body: "ä" })).toBe(2);
  });
});

test("a scrub is told with its end, and with what is not 0", () => {
  const scrub = { endedAtMs: Date.UTC(2026, 0, 2), outcome: "sound", missing: 0, damaged: 0, orphans: 0, unexplained: 0 };
  expect(scrubWords(null)).toBe("none by this node since its start");
  expect(scrubWords({ ...scrub, endedAtMs: null, outcome: "running" })).toBe("under way");
  expect(scrubWords(scrub)).toMatch(/^\S.*2026.*: sound$/);
  expect(scrubWords({ ...scrub, orphans: 1200 })).toEndWith(": sound, 1,200 nobody's");
  expect(scrubWords({ ...scrub, outcome: "damage", missing: 1, damaged: 2, unexplained: 3 })).toEndWith(
    ": data objects are lost, 1 missing, 2 damaged, 3 unexplained",
  );
  expect(scrubWords({ ...scrub, outcome: "failed" })).toEndWith(": not finished");
});

test("numbers have few digits and a unit", () => {
  expect([0, 7, 999, 999.6, 1500, 12_345, 2e9].map(formatCompact)).toEqual(["0", "7", "999", "1k", "1.5k", "12.3k", "2G"]);
  expect([0, 512, 1024, 1536, 5 * 1024 ** 3].map(formatBytes)).toEqual(["0 B", "512 B", "1 KiB", "1.5 KiB", "5 GiB"]);
  expect([0, 0.0176, 5.25, 250, 2500, 60_000, 3_660_000].map(formatSpan)).toEqual([
    "0 ms",
    "17.6 µs",
    "5.25 ms",
    "250 ms",
    "2.5 s",
    "1 min",
    "1 h 1 min",
  ]);
  expect([0, 1400, 90_000].map(formatAge)).toEqual(["just now", "1 s ago", "1 min 30 s ago"]);
  expect([0.001, 0.5, 0, 0.0001].map(formatPercent)).toEqual(["0.1 %", "50 %", "0 %", "< 0.1 %"]);
  expect(["30", "86400", 90_061].map(formatLifetime)).toEqual(["30 s", "1 d", "1 d 1 h"]);
  expect([formatCompact(null), formatBytes(undefined), formatSpan(Number.NaN)]).toEqual(["–", "–", "–"]);
});

describe("addresses", () => {
  for (const name of ["/a", "/a/", "//a", "/a//b", "/a b+c", "/a%2fb", "/%2e%2e", "/q?x#y", "/ä/日本/🧀", '/"><img src=x>']) {
    test(`${name} comes back as it was`, () => {
      expect(parseRoute(streamHref(name))).toEqual({ page: "stream", name, view: "records", from: null });
      expect(parseRoute(streamHref(name, { view: "live", from: 7 }))).toEqual({ page: "stream", name, view: "live", from: 7 });
    });
  }

  test("the rest", () => {
    expect(parseRoute("")).toEqual({ page: "overview" });
    expect(parseRoute("#/streams?prefix=%2Fa%2F&cursor=x")).toEqual({ page: "streams", prefix: "/a/", cursor: "x" });
    expect(parseRoute("#/streams/%zz")).toEqual({ page: "unknown", path: "/streams/%zz" });
    expect(parseRoute("#/streams/a?view=nonsense&from=-1")).toEqual({ page: "stream", name: "/a", view: "records", from: null });
    expect(["12", " 7 ", "", "-1", "1e3", "0x1", "12345678901234567890"].map(parseOffset)).toEqual([12, 7, null, null, null, null, null]);
  });
});

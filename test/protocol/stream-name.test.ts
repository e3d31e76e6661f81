import { describe, expect, test } from "bun:test";
import { isPicoError } from "../../src/lib/errors.ts";
import { encodeStreamPath, parseStreamName, reservedSegmentOf } from "../../src/protocol/stream-name.ts";

describe("stream names", () => {
  test("a path is decoded exactly once", () => {
    expect(parseStreamName("/a%20b")).toBe("/a b");
    expect(parseStreamName("/%61")).toBe("/a");
    expect(parseStreamName("/a%2Fb")).toBe("/a/b");
    expect(parseStreamName("/%2561")).toBe("/%61");
    expect(parseStreamName("/%C3%A9")).toBe("/é");
    expect(parseStreamName("/a%5Cb")).toBe("/a\\b");
  });

  test("nothing is folded", () => {
    for (const name of ["/a", "/a/", "/a//b", "//a", "/A", "/a.b", "/.a", "/..a", "/a..", "/..."]) expect(parseStreamName(name)).toBe(name);
  });

  test("what cannot be a name is refused as bad_request", () => {
    const wrong = [
      "/%",
      "/%z1",
      "/%C3",
      "/%FF",
      "/%00",
      "/%0a",
      "/%7F",
      "/%C2%85",
      "/.",
      "/..",
      "/a/..",
      "/a/../b",
      "/%2e%2e",
      "/a/%2E/b",
      "/a#b",
      "a",
      "",
    ];
    for (const path of wrong) expect(codeOf(() => parseStreamName(path))).toBe("bad_request");
  });

  test("a decoded dot segment behind an encoded slash is refused too", () => {
    expect(codeOf(() => parseStreamName("/a%2F..%2Fb"))).toBe("bad_request");
  });

  test("1,024 decoded bytes are a name, one more is not", () => {
    expect(parseStreamName(`/${"a".repeat(1023)}`)).toHaveLength(1024);
    expect(codeOf(() => parseStreamName(`/${"a".repeat(1024)}`))).toBe("bad_request");
    expect(parseStreamName(`/${"%C3%A9".repeat(511)}`)).toHaveLength(512);
    expect(codeOf(() => parseStreamName(`/${"%C3%A9".repeat(512)}`))).toBe("bad_request");
  });

  test("an encoded name comes back as it was", () => {
    for (const name of ["/a b", "/é/ü", "/100%", "/a?b#c", "/a//b/", "/+&=", "//", "//a/b", "///"])
      expect(parseStreamName(encodeStreamPath(name))).toBe(name);
  });

  test("an encoded name is never taken for another host", () => {
    for (const name of ["//", "//a/b", "///a"]) {
      expect(new URL(encodeStreamPath(name), "http://here:1/").host).toBe("here:1");
    }
  });

  test("reserved are whole first segments only", () => {
    expect(reservedSegmentOf("/_sys")).toBe("_sys");
    expect(reservedSegmentOf("/_sys/catalog")).toBe("_sys");
    expect(reservedSegmentOf("/_schemas/x")).toBe("_schemas");
    expect(reservedSegmentOf("/_groups/g/offsets")).toBe("_groups");
    expect(reservedSegmentOf("/_streams/x")).toBe("_streams");
    for (const name of ["/_sysx", "/_", "/a/_sys", "/_SYS", "//_sys"]) expect(reservedSegmentOf(name)).toBeNull();
  });
});

function codeOf(run: () => unknown): string {
  try {
    run();
    return "none";
  } catch (error) {
    return isPicoError(error) ? error.code : String(error);
  }
}

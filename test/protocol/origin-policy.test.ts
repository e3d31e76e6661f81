import { describe, expect, test } from "bun:test";
import { judgeOrigin, makeOriginPolicy } from "../../src/protocol/origin-policy.ts";

const LOCAL = makeOriginPolicy({ originFlag: "--cors-origin", corsOrigins: [], allowedHosts: [], advertisedUrls: [] });
const PUBLIC = makeOriginPolicy({
  originFlag: "--cors-origin",
  corsOrigins: ["https://app.example/"],
  allowedHosts: ["proxy.example:8443"],
  advertisedUrls: ["https://streams.example:4437"],
});

function isAllowed(policy: typeof LOCAL, origin: string | undefined, authority: string | null, fetchSite?: string): boolean {
  return judgeOrigin(policy, { origin, fetchSite, isUnmarkedBrowser: false, authority }).isAllowed;
}

describe("which pages may talk to a listener", () => {
  test("requests that no browser marked are not judged", () => {
    expect(isAllowed(LOCAL, undefined, "evil.example")).toBe(true);
    expect(isAllowed(LOCAL, undefined, null)).toBe(true);
  });

  test("what a browser sends without a mark is judged by its host: a name that may lead anywhere must be an allowed one", () => {
    const judge = (policy: typeof LOCAL, authority: string | null) =>
      judgeOrigin(policy, { origin: undefined, fetchSite: undefined, isUnmarkedBrowser: true, authority }).isAllowed;
    for (const authority of ["evil.example", "evil.example:4437", "127.0.0.1.evil.example", "1.2.3.4.example:80", "pico", null]) {
      expect([authority, judge(LOCAL, authority)]).toEqual([authority, false]);
    }
    for (const authority of ["localhost:4437", "127.0.0.1:4437", "[::1]:4437", "192.168.1.5:9090", "192.168.1.5", "[fd00::5]:9090"]) {
      expect([authority, judge(LOCAL, authority)]).toEqual([authority, true]);
    }
    for (const authority of ["proxy.example", "streams.example:4437"]) expect(judge(PUBLIC, authority)).toBe(true);
    expect(judge(PUBLIC, "app.example")).toBe(false);
  });

  test("loopback pages are allowed on every port", () => {
    for (const origin of [
      "http://localhost:3000",
      "http://localhost",
      "https://app.localhost:1",
      "http://127.0.0.1:8080",
      "http://[::1]:5",
    ]) {
      const verdict = judgeOrigin(LOCAL, { origin, fetchSite: "cross-site", isUnmarkedBrowser: false, authority: "127.0.0.1:4437" });
      expect(verdict).toEqual({ isAllowed: true, allowOrigin: origin });
    }
  });

  test("foreign, opaque and disguised pages are refused", () => {
    const foreign = [
      "https://evil.example",
      "null",
      "",
      "file://",
      "http://localhost.evil.example",
      "http://127.0.0.1.evil.example",
      "http://evil.example:localhost",
      "http://localhost@evil.example",
      "chrome-extension://localhost",
      "http://127.0.0.1:80/path",
    ];
    for (const origin of foreign) expect(isAllowed(LOCAL, origin, "localhost:4437")).toBe(false);
  });

  test("a page is never allowed because Host names its own origin", () => {
    expect(isAllowed(LOCAL, "http://evil.example:4437", "evil.example:4437", "same-origin")).toBe(false);
    expect(isAllowed(LOCAL, undefined, "evil.example:4437", "same-origin")).toBe(false);
    expect(isAllowed(LOCAL, "http://localhost:4437", "evil.example:4437")).toBe(false);
    expect(isAllowed(LOCAL, "http://localhost:4437", null)).toBe(false);
  });

  test("without an origin only a person or the page's own origin counts", () => {
    expect(isAllowed(LOCAL, undefined, "localhost:4437", "none")).toBe(true);
    expect(isAllowed(LOCAL, undefined, "localhost:4437", "same-origin")).toBe(true);
    expect(isAllowed(LOCAL, undefined, "localhost:4437", "cross-site")).toBe(false);
    expect(isAllowed(LOCAL, undefined, "localhost:4437", "same-site")).toBe(false);
  });

  test("named origins, named hosts and the advertised address are allowed", () => {
    expect(isAllowed(PUBLIC, "https://app.example", "streams.example:4437")).toBe(true);
    expect(isAllowed(PUBLIC, "https://streams.example:4437", "proxy.example")).toBe(true);
    expect(isAllowed(PUBLIC, "http://app.example", "streams.example")).toBe(false);
    expect(isAllowed(PUBLIC, "https://app.example:444", "streams.example")).toBe(false);
    expect(isAllowed(PUBLIC, "https://app.example", "other.example")).toBe(false);
  });

  test("a star allows every origin, but no other host", () => {
    const every = makeOriginPolicy({ originFlag: "--cors-origin", corsOrigins: ["*"], allowedHosts: [], advertisedUrls: [] });
    expect(
      judgeOrigin(every, { origin: "https://any.example", fetchSite: undefined, isUnmarkedBrowser: false, authority: "localhost" }),
    ).toEqual({
      isAllowed: true,
      allowOrigin: "*",
    });
    expect(isAllowed(every, "https://any.example", "evil.example")).toBe(false);
  });
});

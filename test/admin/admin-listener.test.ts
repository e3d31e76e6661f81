import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { AdminSource } from "../../src/admin/admin-source.ts";
import type { HttpListener } from "../../src/protocol/http-listener.ts";
import { openAdmin } from "../support/admin-listener.ts";

const NOT_READY = {
  ready: false,
  serving: false,
  registered: false,
  appliedIndex: 0,
  nodeId: 1,
  phase: "starting",
  stalled: false,
  recovery: null,
};
const source: Partial<AdminSource> = {
  ready: () => NOT_READY,
  cluster: () => {
    throw new Error("secret of the house");
  },
  activity: () => {
    throw new Error("not asked for");
  },
};

/** An answer of each kind: path, method, status. */
const ANSWERS = [
  ["/health", "GET", 200],
  ["/health", "HEAD", 200],
  ["/ready", "GET", 503],
  ["/nothing", "GET", 404],
  ["/ready", "POST", 405],
  ["/admin/cluster", "GET", 500],
  ["/ready", "OPTIONS", 204],
] as const;

describe("the admin listener", () => {
  let listener: HttpListener;
  let address: string;
  beforeAll(() => {
    ({ listener, address } = openAdmin({ source, corsOrigins: ["https://ops.example"] }));
  });
  afterAll(() => listener.stop(0));

  test.each(ANSWERS)("%s %s is %i, and a page of an allowed origin may read it", async (path, method, status) => {
    for (const origin of ["https://ops.example", "http://localhost:3000"]) {
      const answer = await fetch(address + path, { method, headers: { origin } });
      expect(answer.status).toBe(status);
      expect(answer.headers.get("access-control-allow-origin")).toBe(origin);
      expect(answer.headers.get("vary")).toBe("Origin");
    }
    const plain = await fetch(address + path, { method });
    expect(plain.status).toBe(status);
    expect(plain.headers.get("access-control-allow-origin")).toBeNull();
    expect(await plain.text()).not.toContain("secret");
  });

  test("a foreign page gets 403 and no CORS header, on every method but OPTIONS", async () => {
    for (const [path, method] of ANSWERS) {
      const answer = await fetch(address + path, { method, headers: { origin: "https://evil.example" } });
      expect(answer.status).toBe(method === "OPTIONS" ? 204 : 403);
      expect(answer.headers.get("access-control-allow-origin")).toBeNull();
    }
  });

  test("a refusal names the flag of this listener, and not that of the others", async () => {
    for (const path of ["/admin/cluster", "/pico/a"]) {
      const answer = await fetch(address + path, { headers: { origin: "https://evil.example" } });
      expect(await answer.text()).toContain("name it with --admin-cors-origin");
    }
  });
});

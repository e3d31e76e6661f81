import { afterAll, beforeAll, expect, test } from "bun:test";
import type { StreamAnswer } from "../../src/admin/admin-schemas.ts";
import { PicoError } from "../../src/lib/errors.ts";
import { openAdmin, type TestAdmin } from "../support/admin-listener.ts";

/** The names that were asked for. */
const asked: string[] = [];
const STREAM: typeof StreamAnswer.static = {
  name: "/here",
  streamId: 1,
  ownerNodeId: 1,
  ownerAdvertisedAddress: "",
  ownerLocal: true,
  contentType: "text/plain",
  kafkaTopic: null,
  ttlSeconds: 18_446_744_073_709_551_615n,
  expiresAtMs: null,
  closed: false,
  state: "opened",
  epoch: 1,
  nodeId: 1,
  startOffset: 0,
  endOffset: 0,
  pendingTransfer: null,
  createdAtMs: 1,
  deadlineMs: null,
  deleted: false,
  fork: null,
  forks: { count: 0, items: [] },
  objects: { coveringCount: 0, isComplete: true, items: [] },
  serving: null,
};

let admin: TestAdmin;
beforeAll(() => {
  admin = openAdmin({
    source: {
      stream: async (name) => {
        asked.push(name);
        if (name === "/broken") throw new PicoError("corrupt", "data object c/data/ab/4 is missing from the store", { where: "" });
        if (name === "/starting") throw new PicoError("unavailable", "this node is starting; try again", { retryAfterSeconds: 3 });
        return name === "/here" ? STREAM : null;
      },
    },
  });
});
afterAll(() => admin.listener.stop(0));

const get = (path: string, method = "GET") => fetch(admin.address + path, { method });

test.each([
  ["a/b", "/a/b"],
  ["a%2Fb", "/a/b"],
  ["a%2520b", "/a%20b"],
  ["a//b/", "/a//b/"],
  ["%2Fa", "//a"],
  ["%C3%BC", "/ü"],
])("/admin/streams/%s is the stream %s, and one that is missing is named", async (path, name) => {
  const answer = await get(`/admin/streams/${path}`);
  expect(answer.status).toBe(404);
  expect(await answer.json()).toEqual({ error: expect.stringContaining(name) });
  expect(asked.at(-1)).toBe(name);
});

test("what cannot be a name is refused", async () => {
  for (const path of ["%zz", "a%00", "%ff", "a/..%2Fb", "x".repeat(2000)]) {
    const answer = await get(`/admin/streams/${path}`);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toEqual({ error: expect.any(String) });
  }
});

test("numbers beyond those of JavaScript keep their digits", async () => {
  const text = await (await get("/admin/streams/here")).text();
  expect(text).toContain('"ttlSeconds":18446744073709551615,');
});

test("damage is named, and a node that starts says when to ask again", async () => {
  const broken = await get("/admin/streams/broken");
  expect(broken.status).toBe(500);
  expect(await broken.json()).toEqual({ error: expect.stringContaining("c/data/ab/4") });
  const starting = await get("/admin/streams/starting");
  expect(starting.status).toBe(503);
  expect(starting.headers.get("retry-after")).toBe("3");
});

test("methods of later versions are refused, and no name is no stream", async () => {
  for (const method of ["PUT", "DELETE", "POST"]) {
    const answer = await get("/admin/streams/here", method);
    expect(answer.status).toBe(405);
    expect(answer.headers.get("allow")).toBe("GET, HEAD, OPTIONS");
  }
  expect((await get("/admin/streams/")).status).toBe(404);
  expect((await get("/admin/streams")).status).toBe(404);
  for (const path of ["/admin/transfer", "/admin/tokens", "/admin/nodes/1"]) expect((await get(path, "POST")).status).toBe(404);
});

test("HEAD has the length of GET and no body", async () => {
  const [got, head] = [await get("/admin/streams/here"), await get("/admin/streams/here", "HEAD")];
  expect(head.status).toBe(200);
  expect(head.headers.get("content-length")).toBe(String((await got.arrayBuffer()).byteLength));
  expect(await head.text()).toBe("");
});

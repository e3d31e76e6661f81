import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Static } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { ScrubAnswer, type ScrubOrder } from "../../src/admin/scrub-schemas.ts";
import { PicoError } from "../../src/lib/errors.ts";
import { ADMIN_BODY_BYTES_MAX } from "../../src/lib/limits.ts";
import { openAdmin, type TestAdmin } from "../support/admin-listener.ts";
import { MemoryNode } from "../support/memory-node.ts";

const NOTHING: Static<typeof ScrubAnswer> = { running: false, intervalSeconds: 0, run: null };
const asked: Static<typeof ScrubOrder>[] = [];
let next: () => Static<typeof ScrubAnswer> | null;

let admin: TestAdmin;
beforeAll(() => {
  const startScrub = (order: Static<typeof ScrubOrder>) => {
    asked.push(order);
    return next();
  };
  admin = openAdmin({ source: { scrub: () => NOTHING, startScrub } });
});
afterAll(() => admin.listener.stop(0));

function post(body: string | null, headers: Record<string, string> = { "content-type": "application/json" }) {
  asked.length = 0;
  next = () => NOTHING;
  return fetch(`${admin.address}/admin/scrub`, { method: "POST", headers, body });
}

test("an order is taken as it is, and none is the default", async () => {
  for (const [body, order] of [
    [null, {}],
    ["", {}],
    ["{}", {}],
    ['{"verify":true,"deleteOrphans":true,"minAgeSeconds":1800}', { verify: true, deleteOrphans: true, minAgeSeconds: 1800 }],
  ] as const) {
    const answer = await post(body, body === null ? {} : { "content-type": "Application/JSON; charset=utf-8" });
    expect([answer.status, await answer.json(), asked]).toEqual([202, NOTHING, [order]] as never);
  }
});

test("what is no order is refused, and begins nothing", async () => {
  for (const body of [
    "null",
    "[]",
    "{",
    "\u00ff",
    '{"verify":1}',
    '{"verify":null}',
    '{"delete":true}',
    '{"minAgeSeconds":1799}',
    '{"minAgeSeconds":1800.5}',
    '{"minAgeSeconds":1e300}',
  ]) {
    const answer = await post(body);
    expect([body, answer.status, asked]).toEqual([body, 400, []]);
    expect(await answer.json()).toEqual({ error: expect.any(String) });
  }
  expect((await post("{}", { "content-type": "text/plain" })).status).toBe(400);
  expect((await post(" ".repeat(ADMIN_BODY_BYTES_MAX + 1))).status).toBe(413);
});

test("one at a time, and none before the node serves", async () => {
  next = () => null;
  const answer = await fetch(`${admin.address}/admin/scrub`, { method: "POST" });
  expect([answer.status, await answer.json()]).toEqual([409, { error: expect.stringContaining("under way") }]);
  next = () => {
    throw new PicoError("unavailable", "this node is starting; try again", { retryAfterSeconds: 1 });
  };
  const starting = await fetch(`${admin.address}/admin/scrub`, { method: "POST" });
  expect([starting.status, starting.headers.get("retry-after")]).toEqual([503, "1"]);
});

test("a node scrubs when told, and tells of it, in the cluster's answer too", async () => {
  await using node = await MemoryNode.start({ scrubIntervalSeconds: 77 });
  const get = async (path: string) => (await (await fetch(node.admin + path)).json()) as Record<string, unknown>;
  expect(await get("/admin/scrub")).toEqual({ running: false, intervalSeconds: 77, run: null });
  expect(await get("/admin/cluster")).toMatchObject({ scrub: null });
  const begun = await fetch(`${node.admin}/admin/scrub`, {
    method: "POST",
    body: '{"verify":true}',
    headers: { "content-type": "application/json" },
  });
  expect(begun.status).toBe(202);
  let answer = (await begun.json()) as Static<typeof ScrubAnswer>;
  while (answer.running) answer = (await get("/admin/scrub")) as Static<typeof ScrubAnswer>;
  expect([...Value.Errors(ScrubAnswer, answer)]).toEqual([]);
  expect(answer.run).toMatchObject({
    by: "operator",
    verify: true,
    deleteOrphans: false,
    minAgeSeconds: 86_400,
    outcome: "sound",
    error: null,
  });
  expect(await get("/admin/cluster")).toMatchObject({ scrub: { outcome: "sound", missing: 0, damaged: 0, orphans: 0, unexplained: 0 } });
});

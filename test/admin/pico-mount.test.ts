import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { isBelowPico } from "../../src/admin/pico-mount.ts";
import { InvariantError } from "../../src/lib/assert.ts";
import type { Route } from "../../src/ownership/router.ts";
import { Traffic } from "../../src/protocol/traffic.ts";
import type { StreamService } from "../../src/streams/stream-service.ts";
import { openAdmin, type TestAdmin } from "../support/admin-listener.ts";
import { quiet } from "../support/manual-clock.ts";
import { testContext } from "../support/test-listener.ts";
import { TestNode } from "../support/test-node.ts";

const TEXT = { "content-type": "text/plain" };

describe("the Pico protocol below /pico", () => {
  let admin: TestAdmin;
  let node: TestNode;
  let stopping: AbortController;
  let traffic: Traffic;
  beforeEach(async () => {
    traffic = new Traffic();
    admin = openAdmin({ corsOrigins: ["https://ops.example"], observer: traffic });
    node = await new TestNode().start(1);
    stopping = new AbortController();
  });
  afterEach(async () => {
    stopping.abort();
    await admin.listener.stop(0);
    node.kill();
  });

  const open = (route: (name: string) => Route = () => ({ kind: "here" })) =>
    admin.pico.open({ ...testContext(node.streams, stopping.signal), router: { route } });
  const ask = (path: string, init: RequestInit = {}) => fetch(admin.address + path, { redirect: "manual", ...init });

  test("a stream is made, written, read and listed, and its Location leads below /pico again", async () => {
    open();
    const made = await ask("/pico/a%20b", { method: "PUT", headers: TEXT });
    expect(made.status).toBe(201);
    expect(made.headers.get("location")).toBe("/pico/a%20b");
    expect((await ask("/pico/a%20b", { method: "POST", headers: TEXT, body: "one" })).headers.get("pico-next-seq")).toBe("1");
    expect(await (await ask("/pico/a%20b?format=raw")).text()).toBe("one");
    for (const root of ["/pico", "/pico/", "/pico?limit=5"]) {
      expect(await (await ask(root)).json()).toMatchObject({ items: [{ name: "/a b" }] });
    }
    expect((await ask("/pico/a%20b", { method: "DELETE" })).status).toBe(204);
    expect((await ask("/pico/a%20b")).status).toBe(404);
  });

  test("a name is what follows /pico, decoded once", async () => {
    open();
    for (const [path, name] of [
      ["/pico/pico", "/pico"],
      ["/pico/%2520", "/%20"],
      ["/pico/x%2Fy//z/", "/x/y//z/"],
    ] as const) {
      expect((await ask(path, { method: "PUT" })).status).toBe(201);
      expect(node.metadata.view.streamByName(name)).not.toBeNull();
    }
  });

  test.each(["/picox", "/%70ico/a", "/Pico"])("%s is no part of it", async (path) => {
    open();
    expect(isBelowPico(path)).toBe(false);
    const answer = await ask(path, { method: "PUT" });
    expect(answer.status).toBe(404);
    expect(await answer.json()).toEqual({ error: expect.stringContaining(path) });
  });

  test("a stream owned elsewhere is a 307 to its owner's Pico listener, without /pico", async () => {
    open(() => ({ kind: "redirect", address: "http://n2.example:4437" }));
    const answer = await ask("/pico/a%20b//c?seq=1", { method: "POST", body: "x" });
    expect(answer.status).toBe(307);
    expect(answer.headers.get("location")).toBe("http://n2.example:4437/a%20b//c?seq=1");
  });

  test("pages may ask whom the admin listener lets in, and are told so in the protocol's own words", async () => {
    open();
    const foreign = await ask("/pico/s", { method: "PUT", headers: { origin: "https://evil.example" } });
    expect(foreign.status).toBe(403);
    expect(foreign.headers.get("access-control-allow-origin")).toBeNull();
    expect(await foreign.json()).toMatchObject({ error: "permission_denied" });
    const allowed = await ask("/pico/s", { method: "PUT", headers: { origin: "https://ops.example" } });
    expect(allowed.status).toBe(201);
    expect(allowed.headers.get("access-control-allow-origin")).toBe("https://ops.example");
    const preflight = await ask("/pico/s", { method: "OPTIONS", headers: { origin: "https://ops.example" } });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get("access-control-allow-headers")).toContain("Pico-Producer-Id");
  });

  test.each([
    ["script", 403],
    ["style", 403],
    ["worker", 403],
    ["object", 403],
    ["empty", 200],
    ["document", 200],
  ])("a page that wants a record as %s gets %i", async (destination, status) => {
    open();
    await ask("/pico/s", { method: "PUT", headers: { "content-type": "text/javascript" } });
    await ask("/pico/s", { method: "POST", headers: TEXT, body: "steal()" });
    const headers = { "sec-fetch-dest": destination, "sec-fetch-site": "same-origin" };
    expect((await ask("/pico/s?format=raw", { headers })).status).toBe(status);
  });

  test("before the node serves, and from its stop on, everything is 503 with Retry-After", async () => {
    const check = async () => {
      for (const method of ["GET", "PUT", "POST"]) {
        const answer = await ask("/pico/s", { method });
        expect(answer.status).toBe(503);
        expect(answer.headers.get("retry-after")).toBe("1");
        expect(await answer.json()).toMatchObject({ error: "unavailable" });
      }
      expect((await ask("/health")).status).toBe(200);
    };
    await check();
    open();
    expect((await ask("/pico/s", { method: "PUT" })).status).toBe(201);
    admin.pico.close();
    await check();
    // The traffic of the protocol has all of them, and nothing else that the listener answered.
    expect([traffic.overloadCount, traffic.errorCount("unavailable")]).toEqual([6, 6]);
    expect(traffic.operations.get("create")?.answers).toEqual({ "2xx": 1, "3xx": 0, "4xx": 0, "5xx": 2 });
    expect(traffic.operations.get("read")?.durations.count).toBe(2);
  });

  test("a request that finds a broken invariant after the stop began ends the node as ever", async () => {
    const broken: unknown[] = [];
    const { promise: page, reject } = Promise.withResolvers<never>();
    const service: StreamService = Object.assign(Object.create(node.streams), { read: () => page });
    admin.pico.open({ ...testContext(service, stopping.signal), onInvariantBroken: (error) => broken.push(error) });
    const answer = ask("/pico/s");
    while (admin.listener.pendingRequests < 1) await quiet();
    admin.pico.close();
    const error = new InvariantError("a test broke it");
    reject(error);
    expect((await answer).status).toBe(500);
    expect(broken).toEqual([error]);
  });

  test("an event stream has its head at once and its end at the stop, and only then the listener is idle", async () => {
    open();
    await ask("/pico/s", { method: "PUT", headers: TEXT });
    // The head arrives although there is no record: fetch resolves with it.
    const live = await ask("/pico/s?live=sse&seq=now");
    expect(live.headers.get("content-type")).toBe("text/event-stream");
    const poll = ask("/pico/s?live=long-poll&seq=now");
    while (node.streams.waiterCount < 2) await quiet();
    let isIdle = false;
    const idle = admin.listener.whenIdle(60_000).then(() => {
      isIdle = true;
    });
    await quiet();
    expect(isIdle).toBe(false);
    stopping.abort();
    admin.pico.close();
    expect(await live.text()).toContain("event: control");
    expect((await poll).status).toBe(204);
    await idle;
    expect(admin.listener.pendingRequests).toBe(0);
  });

  test("a request without a host, as of HTTP/1.0, is answered", async () => {
    open();
    const { hostname, port } = new URL(admin.address);
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect(Number(port), hostname, () => socket.write("GET /pico/s HTTP/1.0\r\n\r\n"));
      socket.on("data", (bytes) => {
        socket.destroy();
        resolve(bytes.toString());
      });
      socket.on("error", reject);
    });
    expect(answer).toStartWith("HTTP/1.1 404");
  });
});

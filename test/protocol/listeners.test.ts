import { afterEach, describe, expect, test } from "bun:test";
import { InvariantError } from "../../src/lib/assert.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { silentLogger } from "../../src/lib/log.ts";
import { systemRandom } from "../../src/lib/random.ts";
import type { Route } from "../../src/ownership/router.ts";
import { createDurableStreamsListener } from "../../src/protocol/durable-streams-listener.ts";
import type { HttpListener } from "../../src/protocol/http-listener.ts";
import { createPicoListener } from "../../src/protocol/pico-listener.ts";
import type { ProtocolContext } from "../../src/protocol/protocol-context.ts";
import { RequestBodies } from "../../src/protocol/request-body.ts";
import { FakeStream } from "./fake-streams.ts";

const open: HttpListener[] = [];

afterEach(async () => {
  for (const listener of open.splice(0)) await listener.stop(0);
});

interface Setup {
  readonly stream?: FakeStream;
  readonly route?: (name: string) => Route;
  readonly log?: ProtocolContext["log"];
  readonly onInvariantBroken?: ProtocolContext["onInvariantBroken"];
  readonly stopping?: AbortController;
}

function start(create: (context: ProtocolContext) => HttpListener, setup: Setup = {}) {
  const listener = create({
    service: setup.stream ?? new FakeStream("/s"),
    router: { route: setup.route ?? (() => ({ kind: "here" })) },
    clock: systemClock,
    random: systemRandom,
    log: setup.log ?? silentLogger,
    settings: {
      longPollSeconds: 60,
      sseSeconds: 60,
      pageBytes: 64 * 1024,
      corsOrigins: [],
      allowedHosts: [],
      advertisedUrls: { pico: null, durableStreams: null, admin: null },
    },
    bodies: new RequestBodies(1024),
    onInvariantBroken: setup.onInvariantBroken ?? (() => undefined),
    stopping: (setup.stopping ?? new AbortController()).signal,
  });
  open.push(listener);
  const { address } = listener.listen({ hostname: "127.0.0.1", port: 0 });
  return { listener, address, fetch: (target: string, init?: RequestInit) => fetch(address + target, { redirect: "manual", ...init }) };
}

const LISTENERS = [
  ["pico", createPicoListener],
  ["durableStreams", createDurableStreamsListener],
] as const;

describe.each(LISTENERS)("the %s listener", (kind, create) => {
  test("a stream owned elsewhere is a 307 to path and query as sent, before body and method are looked at", async () => {
    const { fetch } = start(create, { route: () => ({ kind: "redirect", address: "http://n2.example:4437" }) });
    const target = "/a%20b//c?offset=1&x=%2B";
    for (const method of ["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH"]) {
      const body = method === "POST" || method === "PUT" ? "x".repeat(5000) : null;
      const answer = await fetch(target, { method, body });
      expect(answer.status).toBe(307);
      expect(answer.headers.get("location")).toBe(`http://n2.example:4437${target}`);
      expect(answer.headers.get("cache-control")).toBe("no-store");
      expect(answer.headers.get("x-content-type-options")).toBeNull();
      expect(await answer.text()).toBe("");
    }
    expect((await fetch(target, { method: "OPTIONS" })).status).toBe(204);
  });

  test("the name that is routed is the decoded one, and the listener's kind goes with it", async () => {
    const asked: unknown[] = [];
    const router: ProtocolContext["router"] = {
      route(...words) {
        asked.push(words);
        return { kind: "unavailable", retryAfterSeconds: 3, reason: "no" };
      },
    };
    const { fetch } = start((context) => create({ ...context, router }));
    await fetch("/a%20b/%2561");
    expect(asked).toEqual([["/a b/%61", kind]]);
  });

  test("what nobody can serve now is a 503 with code unavailable and Retry-After", async () => {
    const { fetch } = start(create, { route: () => ({ kind: "unavailable", retryAfterSeconds: 3, reason: "in recovery" }) });
    const answer = await fetch("/s");
    expect(answer.status).toBe(503);
    expect(answer.headers.get("retry-after")).toBe("3");
    expect(answer.headers.get("cache-control")).toBe("no-store");
    expect(await answer.json()).toEqual({ error: "unavailable", message: "in recovery" });
  });

  test("a failure that is nobody's refusal is a 500 without its text, logged with its cause", async () => {
    const stream = new FakeStream("/s");
    const cause = new TypeError("secret of the house");
    stream.beforeRead = () => {
      throw cause;
    };
    const logged: unknown[] = [];
    const { fetch } = start(create, { stream, log: { error: (message, fields) => logged.push([message, fields?.error]) } });
    const answer = await fetch("/s");
    expect(answer.status).toBe(500);
    expect(await answer.text()).not.toContain("secret");
    expect(logged).toEqual([["request failed", cause]]);
  });

  test("a broken invariant is told to the node, other failures are not", async () => {
    const stream = new FakeStream("/s");
    const broken: unknown[] = [];
    const { fetch } = start(create, { stream, onInvariantBroken: (error) => broken.push(error) });
    const causes = [new Error("a failure"), new InvariantError("a broken invariant")];
    for (const cause of causes) {
      stream.beforeRead = () => {
        throw cause;
      };
      expect((await fetch("/s")).status).toBe(500);
    }
    expect(broken).toEqual([causes[1]]);
  });

  test("a body over the limit is 413, declared or chunked, and reaches no stream", async () => {
    const { fetch } = start(create);
    const declared = await fetch("/s", { method: "POST", body: "x".repeat(1025), headers: { "content-type": "text/plain" } });
    expect(declared.status).toBe(413);
    const chunks = new ReadableStream({
      pull(controller) {
        controller.enqueue(new Uint8Array(600));
      },
    });
    const chunked = await fetch("/s", { method: "POST", body: chunks, headers: { "content-type": "text/plain" } });
    expect(chunked.status).toBe(413);
  });

  test("a stop ends live reads cleanly, answers waiting polls, and leaves no request behind", async () => {
    const stopping = new AbortController();
    const { listener, fetch } = start(create, { stopping });
    const events = await fetch("/s?offset=now&live=sse");
    const poll = fetch("/s?offset=now&live=long-poll");
    while (listener.pendingRequests < 2) await Bun.sleep(1);
    stopping.abort();
    const stopped = listener.stop(10_000);
    expect(await events.text()).toContain("event: control");
    expect((await poll).status).toBe(204);
    await stopped;
    expect(listener.pendingRequests).toBe(0);
  });

  test("a long poll whose stream is created anew between its wait and its read is a 404, never a record of the new life", async () => {
    const stream = new FakeStream("/s");
    const { listener, fetch } = start(create, { stream });
    const poll = fetch("/s?offset=now&seq=now&live=long-poll");
    while (listener.pendingRequests < 1 || stream.reads < 1) await Bun.sleep(1);
    stream.beforeRead = () => {
      stream.streamId = 2;
    };
    stream.push("of the new life");
    const answer = await poll;
    expect(answer.status).toBe(404);
    expect(await answer.text()).not.toContain("of the new life");
  });

  test("live reads go as they are, whatever encoding a client would take", async () => {
    const stream = new FakeStream("/s");
    stream.push("a");
    stream.isClosed = true;
    const { fetch } = start(create, { stream });
    const answer = await fetch("/s?offset=-1&live=sse", { headers: { "accept-encoding": "gzip, br" } });
    expect(answer.headers.get("content-encoding")).toBeNull();
    expect(answer.headers.get("x-accel-buffering")).toBe("no");
    expect(await answer.text()).toContain("event: data");
  });

  test("a port that is taken is an error that names it", () => {
    const port = Number(new URL(start(create).address).port);
    expect(() => start((context) => retargeted(create(context), port))).toThrow(`127.0.0.1:${port}: the address is in use`);
    open.pop();
  });
});

/** The same listener, bound to a port that is chosen here. */
function retargeted(listener: HttpListener, port: number): HttpListener {
  return { ...listener, pendingRequests: 0, listen: ({ hostname }) => listener.listen({ hostname, port }) };
}

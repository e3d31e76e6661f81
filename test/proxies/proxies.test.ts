/**
 * Live reads, caches and names behind real proxies (FAULTS H2, H3, H5, H7). Tests of a proxy that is not installed are
 * left out with the reason, except where `CI` is set.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PicoClient } from "../../src/client/index.ts";
import { type ServingNode, serveNode } from "../support/command.ts";
import { EventReader } from "./event-reader.ts";
import { isInstalled, PROXY_KINDS, type ProxyKind, ReverseProxy } from "./reverse-proxy.ts";

/** The proxies cut what is silent for this long: more than the 15 s between comments, less than the test is quiet. */
const SILENCE_SECONDS_MAX = Number(process.env.PICO_TEST_PROXY_SILENCE ?? 20);
const QUIET_MS = Number(process.env.PICO_TEST_PROXY_QUIET_MS ?? 25_000);
const TEST_MS_MAX = QUIET_MS + 60_000;

const folder = mkdtempSync(join(tmpdir(), "pico-proxies-"));
let node: ServingNode;
let streams = 0;

beforeAll(async () => {
  node = await serveNode(join(folder, "data"), ["--sse-max-duration-sec", "3600", "--long-poll-timeout-sec", "5"]);
});

afterAll(async () => {
  await node.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function newStream(): Promise<string> {
  const name = `/proxied/${streams++}`;
  await new PicoClient({ url: node.picoUrl }).stream(name).create({ contentType: "text/plain" });
  return name;
}

function targetOf(protocol: "pico" | "durable streams"): { readonly port: number; readonly query: string } {
  const url = protocol === "pico" ? node.picoUrl : node.durableStreamsUrl;
  return { port: Number(new URL(url).port), query: protocol === "pico" ? "?seq=0&live=sse" : "?offset=-1&live=sse" };
}

for (const kind of PROXY_KINDS) {
  if (!isInstalled(kind) && process.env.CI === undefined) {
    console.log(`${kind} is not installed: its tests are left out`);
    continue;
  }
  describe(kind, () => {
    for (const protocol of ["pico", "durable streams"] as const) testEventStreams(kind, protocol);
    testLongPolls(kind);
    testNames(kind);
  });
}

function testEventStreams(kind: ProxyKind, protocol: "pico" | "durable streams"): void {
  // Beside each other: they are quiet for long.
  test.concurrent(
    `${protocol}: events come one by one, and a quiet event stream is not cut`,
    async () => {
      const { port, query } = targetOf(protocol);
      const proxy = await ReverseProxy.start(kind, { targetPort: port, silenceSecondsMax: SILENCE_SECONDS_MAX });
      try {
        const name = await newStream();
        const stream = new PicoClient({ url: node.picoUrl }).stream(name);
        const events = await EventReader.open(`${proxy.url}${name}${query}`, { "accept-encoding": "gzip, br" });
        // Each record is appended only after the one before has come through.
        for (const record of ["first", "second", "third"]) {
          await stream.append(record);
          await events.until(record);
        }
        await Bun.sleep(QUIET_MS);
        await stream.append("behind the silence", { close: true });
        await events.until("behind the silence");
        await events.end();
      } finally {
        await proxy.close();
      }
    },
    TEST_MS_MAX,
  );
}

function testLongPolls(kind: ProxyKind): void {
  test(
    "a long poll is answered by the append, and by 204 after its time",
    async () => {
      const proxy = await ReverseProxy.start(kind, { targetPort: targetOf("pico").port, silenceSecondsMax: SILENCE_SECONDS_MAX });
      try {
        const stream = new PicoClient({ url: proxy.url }).stream(await newStream());
        const poll = fetch(`${proxy.url}${stream.name}?seq=0&live=long-poll`);
        await stream.append("a");
        const answer = await poll;
        expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining("a")]);
        expect((await fetch(`${proxy.url}${stream.name}?seq=1&live=long-poll`)).status).toBe(204);
      } finally {
        await proxy.close();
      }
    },
    TEST_MS_MAX,
  );
}

function testNames(kind: ProxyKind): void {
  test("the name that a client writes is the name that is stored", async () => {
    const proxy = await ReverseProxy.start(kind, { targetPort: targetOf("pico").port, silenceSecondsMax: SILENCE_SECONDS_MAX });
    try {
      const prefix = `/names-${kind}`;
      const names = ["a b", "a%b", "a%2fb", "ü", "a?b", "a#b", "a+b", "a&b=c", "..a", "a..", "%2e", "x".repeat(900)].map(
        (name) => `${prefix}/${name}`,
      );
      const through = new PicoClient({ url: proxy.url });
      const direct = new PicoClient({ url: node.picoUrl });
      for (const name of names) {
        await through.stream(name).create({ body: name, contentType: "text/plain" });
        const { records } = await direct.stream(name).read();
        expect(records.map((record) => record.text())).toEqual([name]);
      }
      const listed: string[] = [];
      for await (const { name } of through.list({ prefix })) listed.push(name);
      expect(listed.sort()).toEqual(names.sort());
    } finally {
      await proxy.close();
    }
  });
}

test.skipIf(!isInstalled("nginx") && process.env.CI === undefined)(
  "nginx with a cache: after delete, create and trim no old record is shown",
  async () => {
    const options = { targetPort: targetOf("pico").port, silenceSecondsMax: SILENCE_SECONDS_MAX, hasCache: true };
    const proxy = await ReverseProxy.start("nginx", options);
    try {
      const name = await newStream();
      const stream = new PicoClient({ url: node.picoUrl }).stream(name);
      const read = async (query: string) => {
        const answer = await fetch(`${proxy.url}${name}?${query}`);
        return { status: answer.status, text: await answer.text() };
      };
      await stream.append(["one", "two", "three"]);
      const full = "seq=0&count=2&format=raw";
      for (let reads = 0; reads < 3; reads++) expect((await read(full)).text).toBe("onetwo");

      await stream.delete();
      expect((await read(full)).status).toBe(404);
      await stream.create({ contentType: "text/plain" });
      await stream.append(["new", "newer", "newest"]);
      expect((await read(full)).text).toBe("newnewer");
      await stream.trim(2);
      expect((await read(full)).status).toBe(410);
      expect((await read("seq=2&format=raw")).text).toBe("newest");
      await stream.append("latest");
      expect((await read("seq=2&format=raw")).text).toBe("newestlatest");
    } finally {
      await proxy.close();
    }
  },
);

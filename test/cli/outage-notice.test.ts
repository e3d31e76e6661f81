/** What `--retry-sec` bridges: whoever has answered is waited for, whatever it said first. */
import { expect, test } from "bun:test";
import { runProgram } from "../../src/cli/program.ts";
import { FaultProxy, type ProxyRule } from "../client/fault-proxy.ts";
import { MemoryNode } from "../support/memory-node.ts";
import { FakeProcess } from "./fake-process.ts";

const BUSY = { kind: "answer", status: 503, headers: { "retry-after": "0" }, body: '{"error":"unavailable","message":"later"}' } as const;
const PROTOCOLS = ["pico", "ds"] as const;

/** Runs one command through a proxy to a node that has the stream `/s` with the record `a`, which is closed where `isClosed`. */
async function run(protocol: "pico" | "ds", words: readonly string[], rule: ProxyRule, isClosed = false) {
  await using node = await MemoryNode.start();
  await fetch(`${node.pico}/s`, { method: "PUT", headers: { "content-type": "text/plain" } });
  await fetch(`${node.pico}/s`, { method: "POST", headers: isClosed ? { "pico-closed": "true" } : {}, body: "a" });
  const proxy = await FaultProxy.start(protocol === "pico" ? node.pico : node.durableStreams, rule);
  try {
    const self = new FakeProcess({ environment: { PICO_ENDPOINT: proxy.url }, input: "b\n" });
    const exitCode = await runProgram(["--protocol", protocol, ...words], self);
    const page = (await (await fetch(`${node.pico}/s?seq=0`)).json()) as { body: string }[];
    const records = page.map(({ body }) => body).join("");
    return { exitCode, output: self.outputText, errors: self.errorText, records, requests: proxy.requests.length };
  } finally {
    await proxy.close();
  }
}

const busyAtFirst: ProxyRule = (_, index) => (index < 3 ? BUSY : { kind: "pass" });

test.each(PROTOCOLS)("over %s a server that is busy at the first request is asked again", async (protocol) => {
  const read = await run(protocol, ["read", "/s"], busyAtFirst);
  expect(read).toMatchObject({ exitCode: 0, output: expect.stringMatching(/^\S+\ta\n$/), errors: "", requests: 4 });
  const tail = await run(protocol, ["tail", "-f", "/s"], busyAtFirst, true);
  expect(tail).toMatchObject({ exitCode: 0, output: "", errors: "" });
  const append = await run(protocol, ["append", "/s"], busyAtFirst);
  expect(append).toMatchObject({ exitCode: 0, errors: expect.stringContaining("next="), records: "ab" });
});

test.each(PROTOCOLS)("over %s it is given up when the time is up, at once with 0", async (protocol) => {
  const everBusy: ProxyRule = () => BUSY;
  for (const verb of ["read", "tail", "append"]) {
    const impatient = await run(protocol, [verb, "/s", "--retry-sec", "0"], everBusy);
    expect([verb, impatient]).toEqual([verb, expect.objectContaining({ exitCode: 1, output: "", records: "a", requests: 1 })]);
  }
  const { exitCode, errors, requests } = await run(protocol, ["read", "/s", "--retry-sec", "2"], everBusy);
  expect({ exitCode, errors }).toEqual({ exitCode: 1, errors: expect.stringContaining(`later (${requests} attempts)\n`) });
  expect(requests).toBeGreaterThan(1);
  // Longer than is left: no sooner than it asks, and so never.
  const later: ProxyRule = () => ({ ...BUSY, headers: { "retry-after": "61" } });
  const refused = await run(protocol, ["read", "/s", "--retry-sec", "60"], later);
  expect(refused).toMatchObject({ exitCode: 1, requests: 1, errors: expect.stringContaining("later; ask again after 61 s\n") });
});

test.each(PROTOCOLS)("over %s an address where nobody has ever answered is told at once", async (protocol) => {
  for (const verb of ["read", "tail", "append"]) {
    const { exitCode, errors, requests } = await run(protocol, [verb, "/s"], () => ({ kind: "drop" }));
    expect([verb, exitCode, requests, errors]).toEqual([verb, 1, 1, expect.not.stringMatching(/trying again|attempts/)]);
  }
  const restarted: ProxyRule = (_, index) => (index === 0 ? BUSY : index < 3 ? { kind: "drop" } : { kind: "pass" });
  expect(await run(protocol, ["read", "/s"], restarted)).toMatchObject({ exitCode: 0, requests: 4 });
});

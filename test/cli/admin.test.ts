/** `pico admin`: what it asks, what it prints, and how it tells what went wrong. */
import { expect, test } from "bun:test";
import type { AdminSource } from "../../src/admin/admin-source.ts";
import { runProgram } from "../../src/cli/program.ts";
import { openAdmin } from "../support/admin-listener.ts";
import { MemoryNode } from "../support/memory-node.ts";
import { FakeProcess, type FakeProcessOptions } from "./fake-process.ts";

async function run(words: readonly string[], options: FakeProcessOptions = {}) {
  const self = new FakeProcess(options);
  const exitCode = await runProgram(words, self);
  return { exitCode, output: self.outputText, errors: self.errorText };
}

/** Runs one command against a listener that knows what `source` does. */
async function ask(source: Partial<AdminSource>, words: readonly string[]) {
  const { listener, address } = openAdmin({ source });
  try {
    return await run(["admin", ...words, "--admin-endpoint", address]);
  } finally {
    await listener.stop(0);
  }
}

/** Answers every request the same, and keeps what it was asked. */
function serveAnswer(status: number, body: string, headers: Record<string, string> = {}) {
  const asked: { path: string; authorization: string | null }[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    development: false,
    fetch(request) {
      asked.push({ path: new URL(request.url).pathname, authorization: request.headers.get("authorization") });
      return new Response(body, { status, headers });
    },
  });
  return { asked, url: `http://127.0.0.1:${server.port}`, [Symbol.asyncDispose]: () => server.stop(true) };
}

test("cluster, nodes and stream of a node that runs", async () => {
  await using node = await MemoryNode.start();
  const at = ["--admin-endpoint", node.admin];
  await fetch(`${node.pico}/logs/a%20b`, { method: "PUT", headers: { "content-type": "text/plain" } });
  const epoch = ((await (await fetch(`${node.admin}/admin/cluster`)).json()) as { nodeEpoch: number }).nodeEpoch;
  expect(await run(["admin", "cluster", ...at])).toEqual({
    exitCode: 0,
    output: expect.stringMatching(
      new RegExp(
        `^cluster=test node=1 epoch=${epoch} address=${node.pico} registered=true appliedIndex=\\d+\nstreams=1 objects=0 gcBacklog=0 leaseHolder=(true|false|null)\n$`,
      ),
    ),
    errors: "",
  });
  expect(await run(["admin", "nodes", ...at])).toEqual({
    exitCode: 0,
    output: `node=1 epoch=${epoch} address=${node.pico} slots=1 opening=1 placed=0 (this node)\n`,
    errors: "",
  });
  const { output } = await run(["admin", "stream", "logs/a b", ...at]);
  expect(output).toMatch(new RegExp(`^name=/logs/a b id=\\d+ owner=1 address=${node.pico} local=true\n`));
  expect(output).toEndWith("\nstate=opened epoch=1 start=0 end=0 closed=false type=text/plain\n");
  expect(await run(["admin", "stream", "/none", ...at])).toEqual({
    exitCode: 1,
    output: "",
    errors: "pico: 404 Not Found: there is no stream /none\n",
  });
});

test("flags stand before the group, before the command and behind it", async () => {
  await using node = await MemoryNode.start();
  const variable = { environment: { PICO_ADMIN_ENDPOINT: node.admin } };
  const { output } = await run(["admin", "nodes", "--json"], variable);
  expect(JSON.parse(output)).toMatchObject({ nodeCount: 1 });
  for (const words of [
    ["admin", "--json", "nodes"],
    ["--token", "t", "admin", "nodes", "--json"],
    ["admin", "--token", "t", "--json", "nodes"],
  ]) {
    expect(await run(words, variable)).toEqual({ exitCode: 0, output, errors: "" });
  }
  expect((await run(["admin", "--admin-endpoint", node.admin, "nodes", "--json"])).output).toBe(output);
  expect(
    (await run(["admin", "nodes", "--admin-endpoint", node.admin], { environment: { PICO_ADMIN_ENDPOINT: "http://127.0.0.1:1" } }))
      .exitCode,
  ).toBe(0);
});

test("the token is the flag's, then that of operators, then that of clients", async () => {
  await using server = serveAnswer(404, '{"error":"there is nothing"}');
  const both = { PICO_ADMIN_ENDPOINT: server.url, PICO_ADMIN_TOKEN: "operator", PICO_TOKEN: "client" };
  await run(["admin", "nodes", "--token", "flag"], { environment: both });
  await run(["admin", "nodes"], { environment: both });
  await run(["admin", "nodes"], { environment: { PICO_ADMIN_ENDPOINT: server.url, PICO_TOKEN: "client" } });
  await run(["admin", "nodes"], { environment: { PICO_ADMIN_ENDPOINT: server.url } });
  expect(server.asked.map(({ authorization }) => authorization)).toEqual(["Bearer flag", "Bearer operator", "Bearer client", null]);
  expect(await run(["admin", "nodes"], { environment: { PICO_ADMIN_TOKEN: "" } })).toMatchObject({
    exitCode: 2,
    errors: expect.stringContaining("PICO_ADMIN_TOKEN"),
  });
});

test("what is absent prints null, -, and a transfer its own line", async () => {
  const node = { nodeEpoch: 5, advertisedAddress: null, slots: 0, openingCount: 0, placedCount: 0, state: "ended" as const };
  const nodes = () => ({ nodes: [{ ...node, nodeId: 2, local: false }], nodeCount: 3 });
  expect(await ask({ nodes }, ["nodes"])).toEqual({
    exitCode: 0,
    output: "node=2 epoch=5 address=- slots=0 opening=0 placed=0\n",
    errors: "pico: there are 2 more nodes\n",
  });
});

test("--json prints every digit, members that it does not know, and two spaces of indent", async () => {
  const nodes = { nodeCount: 0, nodes: [], later: 18446744073709551615n };
  await using server = serveAnswer(
    200,
    JSON.stringify(nodes, (_, value) => (typeof value === "bigint" ? `@${value}@` : value)).replace(/"@|@"/g, ""),
  );
  const { output } = await run(["admin", "nodes", "--json", "--admin-endpoint", server.url]);
  expect(output).toBe('{\n  "nodeCount": 0,\n  "nodes": [],\n  "later": 18446744073709551615\n}\n');
});

test("an answer that is not of the API is a failure that says where", async () => {
  for (const [status, body, errors] of [
    [
      200,
      '{"nodes":[{"nodeId":"1"}],"nodeCount":1}',
      /^pico: transport: the answer is not of this version of the admin API: \/nodes\/0\/\S+ is .+\n$/,
    ],
    [200, "hello", /^pico: transport: the answer is no JSON; is that the admin listener of a node\?\n$/],
    [502, "<html>", /^pico: 502 Bad Gateway: no reason given; is there an admin listener at http:.+\?\n$/],
    [404, '{"error":"not_found","message":"no stream /admin/nodes"}', /^pico: 404 Not Found: no stream \/admin\/nodes\n$/],
    [503, '{"error":"this node is \\u001b[31mstarting"}', /^pico: 503 Service Unavailable: this node is \\u001b\[31mstarting\n$/],
  ] as const) {
    await using server = serveAnswer(status, body);
    expect(await run(["admin", "nodes", "--admin-endpoint", server.url])).toEqual({
      exitCode: 1,
      output: "",
      errors: expect.stringMatching(errors),
    });
  }
});

test("nobody who listens is told with the flag to change", async () => {
  expect(await run(["admin", "cluster", "--admin-endpoint", "http://127.0.0.1:1"])).toEqual({
    exitCode: 1,
    output: "",
    errors:
      "pico: transport: GET http://127.0.0.1:1/admin/cluster: connection refused; start a node with pico serve, or name its admin listener with --admin-endpoint\n",
  });
});

test("wrong words are wrong usage, with the way to the right help", async () => {
  for (const [words, line] of [
    ["admin clutser", /^pico: unknown command 'clutser' \(Did you mean cluster\?\); see pico admin --help\n$/],
    ["admin nodes x", /^pico: "x" is too many: pico admin nodes takes no word without a flag; see pico admin nodes --help\n$/],
    ["admin stream", /^pico: .+STREAM.+; see pico admin stream --help\n$/],
    ["admin nodes --admin-endpoint ftp://h", /^pico: --admin-endpoint "ftp:\/\/h" is no address of a server/],
    ["admin stream /", /^pico: \/ is the list of streams, not a stream\n$/],
  ] as const) {
    expect(await run(words.split(" "))).toEqual({ exitCode: 2, output: "", errors: expect.stringMatching(line) });
  }
  expect(await run(["admin"])).toMatchObject({ exitCode: 2, output: "" });
});

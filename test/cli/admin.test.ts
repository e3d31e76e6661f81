/** `pico admin`: what it asks, what it prints, and how it tells what went wrong. */
import { describe, expect, test } from "bun:test";
import type { AdminSource } from "../../src/admin/admin-source.ts";
import type { ScrubRunTold } from "../../src/admin/scrub-schemas.ts";
import { describeProgress } from "../../src/cli/admin-scrub.ts";
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
        `^cluster=test node=1 epoch=${epoch} address=${node.pico} registered=true appliedIndex=\\d+\nstreams=1 objects=0 gcBacklog=0 leaseHolder=(true|false|null) held=false\n$`,
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

describe("scrub", () => {
  const NONE = { count: 0, items: [] };
  const RUN: ScrubRunTold = {
    by: "operator",
    verify: false,
    deleteOrphans: false,
    minAgeSeconds: 86_400,
    startedAtMs: 1,
    endedAtMs: 2,
    outcome: "sound",
    error: null,
    progress: { phase: "done", done: 0, total: null },
    keys: 5,
    bytes: 600,
    liveObjects: 3,
    verified: { count: 0, bytes: 0 },
    missing: NONE,
    wrongSize: NONE,
    damaged: NONE,
    orphans: NONE,
    orphanBytes: 0,
    unexplained: NONE,
    deleted: { count: 0, bytes: 0 },
    tooYoung: 0,
    refused: NONE,
    nothingDeletedBecause: null,
  };
  const HEAD = "keys=5 bytes=600 objects=3 verified=0\n";

  /** A node whose scrub takes as many looks as there are changes, each the state of one look. */
  function scrubbing(...changes: Partial<ScrubRunTold>[]) {
    const orders: unknown[] = [];
    let looks = 0;
    const answer = () => {
      const run = { ...RUN, ...changes[Math.min(looks, changes.length - 1)] };
      looks += 1;
      return { running: run.outcome === "running", intervalSeconds: 0, run };
    };
    const source: Partial<AdminSource> = {
      scrub: answer,
      startScrub: (order) => {
        orders.push(order);
        return { running: true, intervalSeconds: 0, run: { ...RUN, endedAtMs: null, outcome: "running" } };
      },
    };
    return { source, orders };
  }

  test("begins one with what the flags say, waits for it, and prints what it found", async () => {
    const { source, orders } = scrubbing({ outcome: "running", endedAtMs: null }, {});
    const counts = "missing=0 wrongSize=0 damaged=0 orphans=0 orphanBytes=0 unexplained=0\n";
    expect(await ask(source, ["scrub"])).toEqual({ exitCode: 0, output: `outcome=sound ${HEAD}${counts}`, errors: "" });
    await ask(source, ["scrub", "--verify", "--delete-orphans", "--min-age", "7200"]);
    expect(orders).toEqual([
      { verify: false, deleteOrphans: false },
      { verify: true, deleteOrphans: true, minAgeSeconds: 7200 },
    ]);
    expect(await ask(source, ["scrub", "--min-age", "60"])).toMatchObject({ exitCode: 2, output: "" });
    expect(orders.length).toBe(2);
  });

  test("damage and an end before the end are exit code 1, with a line a finding", async () => {
    const { source } = scrubbing({
      outcome: "damage",
      deleteOrphans: true,
      nothingDeletedBecause: "damage",
      missing: { count: 2, items: [{ key: "c/data/a/1", bytes: 7 }] },
      wrongSize: { count: 1, items: [{ key: "c/data/a/2", expectedBytes: 8, foundBytes: 9 }] },
      damaged: { count: 1, items: [{ key: "c/data/a/3", what: "bytes 0 to 8" }] },
      orphans: { count: 1, items: [{ key: "c/data/a/4", bytes: 3, modifiedAtMs: 1, reason: "removed_object" }] },
      orphanBytes: 3,
      unexplained: { count: 1, items: [{ key: "c/x", bytes: 3, modifiedAtMs: 1, reason: "unknown_kind" }] },
      refused: { count: 1, items: [{ key: "c/data/a/5", code: "AccessDenied", message: "no" }] },
    });
    expect(await ask(source, ["scrub"])).toEqual({
      exitCode: 1,
      errors: "",
      output: [
        `outcome=damage ${HEAD}missing=2 wrongSize=1 damaged=1 orphans=1 orphanBytes=3 unexplained=1`,
        "deleted=0 deletedBytes=0 tooYoung=0 refused=1 keptBecause=damage",
        "missing c/data/a/1 bytes=7",
        "missing ... 1 more",
        "wrongSize c/data/a/2 expected=8 found=9",
        "damaged c/data/a/3 bytes 0 to 8",
        "unexplained c/x bytes=3 reason=unknown_kind",
        "orphan c/data/a/4 bytes=3 reason=removed_object",
        "refused c/data/a/5 AccessDenied: no",
        "",
      ].join("\n"),
    });
    const failed = await ask(scrubbing({ outcome: "failed", error: "the store is away" }).source, ["scrub"]);
    expect([failed.exitCode, failed.output.split("\n")[2]]).toEqual([1, "error the store is away"]);
  });

  test("--show begins none, --json prints the answer, and one that is under way is a conflict", async () => {
    const { source, orders } = scrubbing({ outcome: "running", endedAtMs: null });
    expect(await ask(source, ["scrub", "--show"])).toMatchObject({ exitCode: 0, output: expect.stringMatching(/^outcome=running /) });
    expect(JSON.parse((await ask(source, ["scrub", "--show", "--json"])).output)).toMatchObject({ running: true });
    expect(orders).toEqual([]);
    const none = await ask({ scrub: () => ({ running: false, intervalSeconds: 0, run: null }) }, ["scrub", "--show"]);
    expect(none).toEqual({ exitCode: 0, output: "", errors: "pico: there was no scrub since the start of the node\n" });
    expect(await ask({ startScrub: () => null }, ["scrub"])).toEqual({
      exitCode: 1,
      output: "",
      errors: "pico: 409 Conflict: a scrub is under way on this node; GET /admin/scrub tells how far it is\n",
    });
  });

  test("a flag that another one makes idle is refused, by the names of both, and nothing is asked", async () => {
    const { source, orders } = scrubbing({});
    const looks: string[] = [];
    const scrub = () => {
      looks.push("look");
      return { running: false, intervalSeconds: 0, run: null };
    };
    for (const [words, flags] of [
      [
        ["--show", "--verify"],
        ["--show", "--verify"],
      ],
      [
        ["--delete-orphans", "--show"],
        ["--show", "--delete-orphans"],
      ],
      [
        ["--show", "--min-age", "7200"],
        ["--show", "--min-age"],
      ],
      [
        ["--min-age", "7200"],
        ["--min-age", "--delete-orphans"],
      ],
      [
        ["--verify", "--min-age", "86400"],
        ["--min-age", "--delete-orphans"],
      ],
    ] as const) {
      const { exitCode, output, errors } = await ask({ ...source, scrub }, ["scrub", ...words]);
      expect([words, exitCode, output, flags.filter((flag) => !errors.includes(flag))]).toEqual([words, 2, "", []]);
    }
    expect([orders, looks]).toEqual([[], []]);
  });

  test("a terminal sees how far it is", async () => {
    const progress = (phase: "list" | "verify", done: number, total: number | null) =>
      describeProgress({ progress: { phase, done, total } });
    expect(progress("list", 1, null)).toBe("list  1 key");
    expect(progress("verify", 512, 1024)).toBe("verify  [############............]  50 %  512 bytes of 1.0 KiB");
    expect(progress("verify", 0, 0)).toBe("verify  [########################]  100 %  0 bytes of 0 bytes");
    const { listener, address } = openAdmin({ source: scrubbing({ outcome: "running", endedAtMs: null }, {}).source });
    const { errors, exitCode } = await run(["admin", "scrub", "--admin-endpoint", address], { isErrorsTerminal: true });
    await listener.stop(0);
    expect([exitCode, errors]).toEqual([0, "\r\u001b[Kdone  0 keys\r\u001b[K"]);
  });
});

test("gc holds removal back, lets it go on, and tells what stands", async () => {
  await using node = await MemoryNode.start();
  const gc = (...words: string[]) => run(["admin", "gc", ...words, "--admin-endpoint", node.admin]);
  expect(await gc("status")).toEqual({ exitCode: 0, output: "gcBacklog=0 refused=0 held=false\n", errors: "" });
  expect((await gc("hold", "--for", "90m")).output).toMatch(/^held=until 20\d\d-.*Z\n$/);
  expect((await gc("status")).output).toMatch(/held=until 20\d\d-.*Z\n$/);
  const told = (await (await fetch(`${node.admin}/admin/cluster`)).json()) as { gc: { heldUntilMs: number }; mirror: null };
  expect(told.gc.heldUntilMs).toBeGreaterThan(1_700_000_000_000);
  expect(told.mirror).toBeNull();
  const heldUntil = new Date(told.gc.heldUntilMs).toISOString();
  expect((await run(["admin", "cluster", "--admin-endpoint", node.admin])).output).toEndWith(` held=until ${heldUntil}\n`);
  expect(await gc("release")).toEqual({ exitCode: 0, output: "held=false\n", errors: "" });
  expect((await gc("status")).output).toContain("held=false");
  for (const time of ["8d", "0s", "1", "-1h", "1w"]) {
    expect(await gc("hold", `--for=${time}`)).toMatchObject({
      exitCode: 2,
      output: "",
      errors: expect.stringContaining(`--for "${time}"`),
    });
  }
  for (const body of [
    "",
    "{}",
    '{"holdSeconds":0}',
    '{"holdSeconds":604801}',
    '{"release":false}',
    '{"release":true,"holdSeconds":5}',
    "x",
  ]) {
    const answer = await fetch(`${node.admin}/admin/gc`, { method: "POST", headers: { "content-type": "application/json" }, body });
    expect([body, answer.status]).toEqual([body, 400]);
  }
});

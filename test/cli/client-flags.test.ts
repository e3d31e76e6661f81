/** Each flag and variable of the verbs, absent, empty, 0, at its default and at its maximum: five cases (and what lies beyond). */
import { afterAll, beforeEach, expect, test } from "bun:test";
import { type ClientSettings, readClientSettings, readRetryMs } from "../../src/cli/client-flags.ts";
import { type Environment, FlagValues } from "../../src/cli/flag-values.ts";
import { runProgram } from "../../src/cli/program.ts";
import { isPicoError } from "../../src/lib/errors.ts";
import { FakeProcess } from "./fake-process.ts";

/** As a refusal: what it names. */
const refused = (origin: string) => `refused ${origin}`;

function settle<T>(read: () => T): T | string {
  try {
    return read();
  } catch (error) {
    if (!isPicoError(error, "settings")) throw error;
    return refused(String(error.facts.flag));
  }
}

const flags = (given: Record<string, string>) => new Map(Object.entries(given).map(([flag, text]) => [flag, [text]]));
const settings = (given: Record<string, string>, environment: Environment = {}) =>
  settle<ClientSettings>(() => readClientSettings(new FlagValues(flags(given), environment)));

const PICO = { protocol: "pico", endpoint: "http://127.0.0.1:4437", token: null } as const;
const DS = { protocol: "ds", endpoint: "http://127.0.0.1:4438", token: null } as const;

test("--endpoint, --protocol and --token, as flags and as variables", () => {
  expect(settings({})).toEqual(PICO);
  for (const [flag, variable] of [
    ["--endpoint", "PICO_ENDPOINT"],
    ["--protocol", "PICO_PROTOCOL"],
    ["--token", "PICO_TOKEN"],
  ] as const) {
    expect(settings({ [flag]: "" })).toBe(refused(flag));
    expect(settings({}, { [variable]: "" })).toBe(refused(variable));
  }
  const cases: [string, string, string, ClientSettings | null][] = [
    ["--endpoint", "PICO_ENDPOINT", "0", null],
    ["--endpoint", "PICO_ENDPOINT", "127.0.0.1:4437", null],
    ["--endpoint", "PICO_ENDPOINT", "ftp://h", null],
    ["--endpoint", "PICO_ENDPOINT", "http://u:p@h", null],
    ["--endpoint", "PICO_ENDPOINT", "http://h/?q", null],
    ["--endpoint", "PICO_ENDPOINT", "http://h:70000", null],
    ["--endpoint", "PICO_ENDPOINT", "http://127.0.0.1:4437", PICO],
    ["--endpoint", "PICO_ENDPOINT", "https://h:65535/below/", { ...PICO, endpoint: "https://h:65535/below/" }],
    ["--protocol", "PICO_PROTOCOL", "0", null],
    ["--protocol", "PICO_PROTOCOL", "kafka", null],
    ["--protocol", "PICO_PROTOCOL", "pico", PICO],
    ["--protocol", "PICO_PROTOCOL", "ds", DS],
    ["--token", "PICO_TOKEN", "0", { ...PICO, token: "0" }],
    ["--token", "PICO_TOKEN", "with blank", null],
    ["--token", "PICO_TOKEN", "größe", null],
    ["--token", "PICO_TOKEN", "t".repeat(4096), { ...PICO, token: "t".repeat(4096) }],
  ];
  for (const [flag, variable, text, expected] of cases) {
    expect([flag, text, settings({ [flag]: text })]).toEqual([flag, text, expected ?? refused(flag)]);
    expect([variable, text, settings({}, { [variable]: text })]).toEqual([variable, text, expected ?? refused(variable)]);
    // A variable that loses is not looked at.
    expect(
      settings({ [flag]: flag === "--endpoint" ? "http://h" : flag === "--protocol" ? "pico" : "t" }, { [variable]: text }),
    ).not.toBeString();
  }
  const secret = settle(() => readClientSettings(new FlagValues(flags({ "--token": "sec ret" }), {})));
  expect(secret).not.toContain("sec ret");
});

test("--retry-sec, as a flag and as a variable", () => {
  const retry = (given: Record<string, string>, environment: Environment = {}) =>
    settle(() => readRetryMs(new FlagValues(flags(given), environment)));
  expect(retry({})).toBe(60_000);
  for (const [text, expected] of [
    ["", null],
    ["0", 0],
    ["60", 60_000],
    ["86400", 86_400_000],
    ["86401", null],
    ["-1", null],
    ["1.5", null],
    ["1e3", null],
  ] as const) {
    expect([text, retry({ "--retry-sec": text })]).toEqual([text, expected ?? refused("--retry-sec")]);
    expect([text, retry({}, { PICO_RETRY_SEC: text })]).toEqual([text, expected ?? refused("PICO_RETRY_SEC")]);
  }
});

/** What reached a server that answers every request as a stream of three records would. */
const requests: string[] = [];
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  development: false,
  async fetch(request) {
    const { pathname, search } = new URL(request.url);
    const interesting = ["content-type", "pico-ttl", "pico-trim-seq"].flatMap((name) => request.headers.get(name) ?? []);
    const body = new Uint8Array(await request.arrayBuffer());
    const count = request.method === "POST" && body.length >= 5 ? [`${new DataView(body.buffer).getUint32(1)} records`] : [];
    requests.push([request.method, pathname + search, ...interesting, ...count].join(" "));
    const headers = {
      "pico-start-seq": "0",
      "pico-next-seq": "3",
      "pico-up-to-date": "true",
      "content-type": "text/plain",
      "pico-producer-seq": "0",
    };
    if (pathname === "/") return Response.json({ items: [] });
    return new Response(request.method === "GET" ? new Uint8Array([1, 0, 0, 0, 0]) : null, { headers });
  },
});
afterAll(() => server.stop(true));
beforeEach(() => {
  requests.length = 0;
});

async function run(words: readonly string[], input = "") {
  const self = new FakeProcess({ environment: { PICO_ENDPOINT: `http://127.0.0.1:${server.port}` }, input });
  return { exitCode: await runProgram(words, self), errors: self.errorText };
}

const MAX = "9007199254740991";

test.each([
  // create: the type and the lifetime reach the server as given.
  [["create", "/s"], "PUT /s application/octet-stream"],
  [["create", "/s", "--content-type", ""], null],
  [["create", "/s", "--content-type", "0"], "PUT /s 0"],
  [["create", "/s", "--content-type", "application/octet-stream"], "PUT /s application/octet-stream"],
  [["create", "/s", "--ttl", ""], null],
  [["create", "/s", "--ttl", "0"], "PUT /s application/octet-stream 0"],
  [["create", "/s", "--ttl", MAX], `PUT /s application/octet-stream ${MAX}`],
  [["create", "/s", "--ttl", "9007199254740992"], null],
  [["create", "/s", "--ttl", "-1"], null],
  // trim: 0 is a sequence, and there is no default.
  [["trim", "/s"], null],
  [["trim", "/s", "--seq", ""], null],
  [["trim", "/s", "--seq", "0"], "POST /s 0"],
  [["trim", "/s", "--seq", MAX], `POST /s ${MAX}`],
  [["trim", "/s", "--seq", "9007199254740992"], null],
  // ls: 0 is the server's own number.
  [["ls"], "GET /?prefix=%2F"],
  [["ls", "--prefix", ""], null],
  [["ls", "--prefix", "0"], "GET /?prefix=0"],
  [["ls", "--prefix", "/"], "GET /?prefix=%2F"],
  [["ls", "--limit", ""], null],
  [["ls", "--limit", "0"], "GET /?prefix=%2F"],
  [["ls", "--limit", "1"], "GET /?prefix=%2F&limit=1"],
  [["ls", "--limit", MAX], "GET /?prefix=%2F&limit=10000"],
  [["ls", "--limit", "9007199254740992"], null],
  [["ls", "--after", ""], null],
  [["ls", "--after", "/a"], "GET /?prefix=%2F&start_after=%2Fa"],
  // append: 0 records a request are none.
  [["append", "/s"], "POST /s application/vnd.picomq.batch 1 records"],
  [["append", "/s", "--batch", ""], null],
  [["append", "/s", "--batch", "0"], null],
  [["append", "/s", "--batch", "1"], "POST /s application/vnd.picomq.batch 1 records"],
  [["append", "/s", "--batch", "10000"], "POST /s application/vnd.picomq.batch 1 records"],
  [["append", "/s", "--batch", "10001"], null],
  [["append", "/s", "--content-type", ""], null],
  [["append", "/s", "--retry-sec", ""], null],
  [["append", "/s", "--retry-sec", "0"], "POST /s application/vnd.picomq.batch 1 records"],
  // A slash is put before a name, and what cannot be one is refused before a request.
  [["head", "s"], "HEAD /s"],
  [["head", ""], null],
  [["head", "/"], null],
  [["head", "/a/../b"], null],
  [["head", `/${"n".repeat(1023)}`], `HEAD /${"n".repeat(1023)}`],
  [["head", `/${"n".repeat(1024)}`], null],
] as const)("%j asks for %p", async (words, expected) => {
  const { exitCode, errors } = await run(words, "line\n");
  if (expected === null) {
    expect({ exitCode, errors, requests }).toEqual({ exitCode: 2, errors: expect.stringMatching(/^pico: .+\n$/), requests: [] });
  } else {
    expect({ exitCode, request: requests.at(-1) }).toEqual({ exitCode: 0, request: expected });
  }
});

test.each([
  [[], "seq=0"],
  [["--from", "0"], "seq=0"],
  [["--from", MAX], `seq=${MAX}`],
  [["--from", ""], null],
  [["--from", "-1"], null],
  [["--from", "9007199254740992"], null],
] as const)("read with %j begins at %p", async (words, expected) => {
  const { exitCode } = await run(["read", "/s", ...words]);
  if (expected === null) expect({ exitCode, requests }).toEqual({ exitCode: 2, requests: [] });
  else expect(requests[0]).toContain(`?${expected}&`);
});

test("--follow is a switch that no variable sets", async () => {
  const self = new FakeProcess({
    environment: { PICO_ENDPOINT: `http://127.0.0.1:${server.port}`, PICO_FOLLOW: "1", PICO_SEQ: "1", PICO_FROM: "x", PICO_BATCH: "0" },
  });
  expect(await runProgram(["tail", "/s"], self)).toBe(0);
  expect(requests.map((request) => request.split("&")[0])).toEqual(["HEAD /s", "GET /s?seq=3"]);
  expect(await runProgram(["trim", "/s"], self)).toBe(2);
});

/** What goes wrong between client and server, done by a proxy to single exchanges, and a server that is killed. */
import {
  DurableStreamsClient,
  type Fetch,
  PicoClient,
  type PicoProducer,
  type PicoRecord,
  type PicoStream,
  type RetryPause,
  type StreamError,
} from "../../../src/client/index.ts";
import { equal, isTrue } from "../../pico/expect.ts";
import { type Fault, type FaultRule, PASS } from "../case-stage.ts";
import { all, type ClientCase, refusal } from "../client-suite.ts";
import { ImpatientClock, impatientSeams } from "../impatient-clock.ts";

/** The fault for the first request that fits, then none. */
function once(fault: Fault, fits: (method: string, target: string) => boolean): FaultRule {
  let isDone = false;
  return ({ method, target }) => {
    if (isDone || !fits(method, target)) return PASS;
    isDone = true;
    return fault;
  };
}

const isPost = (method: string): boolean => method === "POST";
const isGet = (method: string): boolean => method === "GET";
const redirectTo = (location: string, status = 307): Fault => ({ kind: "answer", status, headers: { location } });
const BUSY: Fault = { kind: "answer", status: 503, headers: { "retry-after": "7" }, body: '{"error":"unavailable","message":"later"}' };

const texts = (records: readonly PicoRecord[]) => records.map((record) => record.text());

export const faultCases: readonly ClientCase[] = [
  {
    name: "fault: an answer that is cut in its body is asked for again, and is whole",
    async run({ pico, name, proxy }) {
      const body = "x".repeat(20_000);
      await pico.stream(name).create({ body });
      const faulty = await proxy("pico", once({ kind: "cut", bodyBytes: 100 }, isGet));
      const page = await new PicoClient({ url: faulty.url }).stream(name).read();
      equal(texts(page.records), [body], "record");
      equal(faulty.requests.length, 2, "requests");
    },
  },
  {
    name: "fault: an append whose answer is lost is an unknown outcome, and is not sent again",
    async run({ pico, durable, name, proxy }) {
      const stream = pico.stream(name);
      await stream.create();
      const faulty = await proxy("pico", () => ({ kind: "lose-answer" }));
      const error = await refusal(new PicoClient({ url: faulty.url }).stream(name).append("a"), "unknown_outcome");
      equal([error.status, error.isRetryable, error.isOutcomeUnknown, error.wireCode], [null, false, true, null], "facts");
      const other = await proxy("durable", once({ kind: "lose-answer" }, isPost));
      await refusal(new DurableStreamsClient({ url: other.url }).stream(name).append("b"), "unknown_outcome");
      equal([faulty.requests.length, other.requests.filter(({ method }) => method === "POST").length], [1, 1], "requests");
      equal(texts((await stream.read()).records), ["a", "b"], "each was taken, once");
      equal((await durable.stream(name).read()).text(), "ab", "over the other protocol");
    },
  },
  {
    name: "fault: a producer sends again what has no answer, under its sequence, and it is there once",
    async run({ pico, name, proxy }) {
      for (const fault of [{ kind: "lose-answer" }, { kind: "drop" }, { kind: "cut", bodyBytes: 0 }] as const) {
        const stream = pico.stream(`${name}/${fault.kind}`);
        await stream.create();
        let posts = 0;
        // Every second request.
        const faulty = await proxy("pico", ({ method }) => (isPost(method) && posts++ % 2 === 0 ? fault : PASS));
        const producer = new PicoClient({ url: faulty.url }).stream(stream.name).producer({ id: "p" });
        for (const record of ["a", "b", "c"]) await producer.append(record);
        await producer.close({ closeStream: true });
        equal(texts((await stream.read()).records), ["a", "b", "c"], fault.kind);
        const seqs = faulty.requests.map(({ headers }) => headers["pico-producer-seq"]);
        isTrue(
          seqs.every((seq, index) => index === 0 || Number(seq) - Number(seqs[index - 1]) <= 1),
          `${fault.kind}: sequences in order`,
        );
        equal((await stream.head()).isClosed, true, `${fault.kind}: closed`);
      }
    },
  },
  {
    name: "fault: the acknowledgement of a repeat tells that its place is not known",
    async run({ pico, durable, name, proxy }) {
      await pico.stream(name).create();
      const faulty = await proxy("pico", once({ kind: "lose-answer" }, isPost));
      const ack = await new PicoClient({ url: faulty.url }).stream(name).producer({ id: "p" }).append("a");
      equal([ack.seq, ack.timestampMs, ack.producerSeq], [null, null, 0], "pico");
      const other = await proxy("durable", once({ kind: "lose-answer" }, isPost));
      const { next } = await new DurableStreamsClient({ url: other.url }).stream(name).producer({ id: "q" }).append("b");
      equal(next, (await durable.stream(name).head()).tail, "durable");
      equal((await durable.stream(name).read()).text(), "ab", "once");
    },
  },
  {
    name: "fault: creates, closes, trims and deletes are repeated after a lost answer",
    async run({ pico, name, proxy }) {
      const faulty = await proxy("pico", (_request, index) => (index % 2 === 0 ? { kind: "lose-answer" } : PASS));
      const stream = new PicoClient({ url: faulty.url }).stream(name);
      equal((await stream.create()).isNew, false, "it was there when it was asked for again");
      await pico.stream(name).append(["a", "b"]);
      equal(await stream.trim(1), { start: 1 }, "trim");
      equal((await stream.close()).isClosed, true, "close");
      equal(await stream.delete(), true, "it was there when it was first asked to go");
      equal(faulty.requests.length, 8, "requests");
      await refusal(pico.stream(name).head(), "not_found");
    },
  },
  {
    name: "fault: after 503 the client comes again no sooner than asked, and by itself only where that is harmless",
    async run({ pico, name, proxy }) {
      await pico.stream(name).create();
      const clock = new ImpatientClock();
      const busy = await proxy("pico", (_request, index) => (index < 2 ? BUSY : PASS));
      const stream = new PicoClient({ url: busy.url, seams: impatientSeams(clock) }).stream(name);
      equal((await stream.head()).tail, 0, "head");
      equal(clock.pauses, [7000, 7000], "pauses");
      const closed = await proxy("pico", () => BUSY);
      const other = new PicoClient({ url: closed.url, seams: impatientSeams(clock) }).stream(name);
      const error = await refusal(other.append("a"), "unavailable");
      equal([error.facts, error.isRetryable, error.isOutcomeUnknown], [{ retryAfterMs: 7000 }, true, false], "an append");
      equal(closed.requests.length, 1, "not repeated");
      await refusal(other.producer({ id: "p" }).append("a"), "unavailable");
      isTrue(closed.requests.length > 2, "a producer's is repeated");
    },
  },
  {
    name: "fault: retries are bounded in number and in time, and the last error says how many there were",
    async run({ name, proxy }) {
      const clock = new ImpatientClock();
      const down = await proxy("pico", () => ({ kind: "drop" }));
      const options = { url: down.url, seams: impatientSeams(clock) };
      const pauses: RetryPause[] = [];
      const onPause = (pause: RetryPause) => pauses.push(pause);
      const byCount = await refusal(new PicoClient({ ...options, retry: { attemptsMax: 4, onPause } }).stream(name).head(), "transport");
      equal(
        pauses.map(({ failures, error }) => [failures, error.code]),
        [1, 2, 3].map((failures) => [failures, "transport"]),
        "each pause is told",
      );
      equal([byCount.facts, down.requests.length], [{ attempts: 4 }, 4], "number");
      equal(clock.pauses, [50, 100, 200], "back-off");
      const byTime = await refusal(
        new PicoClient({ ...options, retry: { attemptsMax: 1000, totalMs: 1000 } }).stream(name).head(),
        "transport",
      );
      equal(byTime.facts, { attempts: 5 }, "50 + 100 + 200 + 400 ms, and 800 more would be too late");
      const never = await refusal(new PicoClient({ ...options, retry: { attemptsMax: 1 } }).stream(name).head(), "transport");
      equal([never.facts, never.isRetryable], [{}, true], "none");
      const late = await proxy("pico", () => ({ kind: "answer", status: 503, headers: { "retry-after": "61" } }));
      const soon = await refusal(new PicoClient({ url: late.url, seams: impatientSeams(clock) }).stream(name).head(), "unavailable");
      equal([soon.facts, late.requests.length], [{ retryAfterMs: 61_000 }, 1], "a wait that is too long is not begun");
    },
  },
  {
    name: "fault: a refused connection never carried an append, which is a failure and no unknown outcome",
    notInBrowser: "a browser does not tell a refused connection from one that broke",
    async run({ name, ownServer }) {
      const server = await ownServer();
      await server.kill();
      const error = await refusal(new PicoClient({ url: server.picoUrl }).stream(name).append("a"), "transport");
      equal([error.isRetryable, error.isOutcomeUnknown], [true, false], "facts");
    },
  },
  {
    name: "fault: a server that does not answer is given up after the time-out",
    async run({ name, proxy }) {
      const silent = await proxy("pico", () => ({ kind: "hang" }));
      const client = new PicoClient({ url: silent.url, timeoutMs: 100, retry: { attemptsMax: 2 } });
      equal((await refusal(client.stream(name).head(), "transport")).facts, { attempts: 2 }, "attempts");
      equal((await refusal(client.stream(name).append("a"), "unknown_outcome")).isOutcomeUnknown, true, "an append");
    },
  },
  {
    name: "fault: a redirect is followed with method, body and credential, on every hop",
    notInBrowser: "a browser follows redirects itself, and calls the origin of a page null behind one to a third origin",
    async run({ pico, name, proxy }) {
      await pico.stream(name).create();
      const owner = await proxy("pico", () => PASS);
      for (const status of [307, 308]) {
        const middle = await proxy("pico", ({ target }) => redirectTo(owner.url + target, status));
        const first = await proxy("pico", ({ target }) => redirectTo(middle.url + target, status));
        const stream = new PicoClient({ url: first.url, token: "secret" }).stream(name);
        await stream.append(`via ${status}`);
        for (const { requests } of [first, middle, owner]) {
          equal([requests.at(-1)?.method, requests.at(-1)?.headers.authorization], ["POST", "Bearer secret"], "a hop");
        }
      }
      equal(texts((await pico.stream(name).read()).records), ["via 307", "via 308"], "records");
      const first = await proxy("pico", ({ target }) => redirectTo(owner.url + target));
      const page = await new PicoClient({ url: first.url }).stream(name).read({ from: 1 });
      equal([page.records.length, owner.requests.at(-1)?.headers.authorization], [1, undefined], "no credential where none is given");
    },
  },
  {
    name: "fault: a redirect within the same origin is followed with method, body and credential",
    async run({ pico, name, proxy }) {
      await pico.stream(name).create();
      // To the browser the first of them is asked for twice: it shows no redirect, and follows one only when told to.
      const moving = await proxy("pico", ({ target }) => (target.includes("moved=1") ? PASS : redirectTo(`${target}?moved=1`)));
      await new PicoClient({ url: moving.url, token: "secret" }).stream(name).append("a");
      equal(texts((await pico.stream(name).read()).records), ["a"], "records");
      const { method, target, headers } = moving.requests.at(-1) ?? {};
      equal([method, target, headers?.authorization], ["POST", `${name}?moved=1`, "Bearer secret"], "the last request");
    },
  },
  {
    name: "fault: a redirect to a server that allows every origin is followed, from web pages too",
    async run({ name, proxy, ownServer }) {
      const owner = await ownServer(["--cors-origin", "*"]);
      const stream = new PicoClient({ url: owner.picoUrl }).stream(name);
      await stream.create();
      const first = await proxy("pico", ({ target }) => redirectTo(owner.picoUrl + target));
      const redirected = new PicoClient({ url: first.url }).stream(name);
      await redirected.append("a", { close: true });
      equal(await collect(redirected, "sse"), ["a"], "live");
      equal(texts((await redirected.read()).records), ["a"], "records");
    },
  },
  {
    name: "fault: redirects in a circle end after five hops, which the error names; other redirects are refused",
    notInBrowser: "a browser follows redirects itself, as many as it wants, and names none",
    async run({ name, proxy }) {
      const circle = await proxy("pico", ({ target }) => redirectTo(target));
      const error = await refusal(new PicoClient({ url: circle.url }).stream(name).append("a"), "redirect");
      equal([circle.requests.length, error.facts.hops?.length, error.isOutcomeUnknown], [6, 7, false], "hops");
      const moved = await proxy("pico", () => redirectTo("/other", 302));
      equal((await refusal(new PicoClient({ url: moved.url }).stream(name).head(), "request_failed")).status, 302, "302");
      const nowhere = await proxy("pico", () => ({ kind: "answer", status: 307 }));
      await refusal(new PicoClient({ url: nowhere.url }).stream(name).head(), "redirect");
      const odd = await proxy("pico", () => redirectTo("ftp://127.0.0.1/"));
      await refusal(new PicoClient({ url: odd.url }).stream(name).head(), "redirect");
    },
  },
  {
    name: "fault: a token is not sent from https on to http",
    async run({ name }) {
      const asked: string[] = [];
      const fetch: Fetch = async (url) => {
        asked.push(url);
        return new Response(null, { status: 307, headers: { location: "http://elsewhere.example/s" } });
      };
      const seams = impatientSeams(new ImpatientClock(), fetch);
      await refusal(new PicoClient({ url: "https://here.example", token: "t", seams }).stream(name).head(), "redirect");
      equal(asked.length, 1, "requests");
    },
  },
  {
    name: "fault: in a browser, which shows no redirect, the credential is sent to where it led",
    async run({ name }) {
      const asked: string[] = [];
      // As browsers do: a redirect is opaque, or followed without the credential.
      const fetch: Fetch = async (url, { headers, redirect, method }) => {
        asked.push(`${method} ${new URL(url).host} ${redirect} ${headers.get("authorization")}`);
        const isOwner = url.startsWith("http://owner.example");
        if (!isOwner && redirect === "manual") return shaped(new Response(null), { type: "opaqueredirect", status: 0, ok: false });
        if (!isOwner) return shaped(new Response(null, { status: 401 }), { url: `http://owner.example${name}`, redirected: true });
        return new Response(null, { status: 200, headers: { "pico-start-seq": "4", "pico-next-seq": "5" } });
      };
      const client = new PicoClient({ url: "http://any.example", token: "t", seams: impatientSeams(new ImpatientClock(), fetch) });
      equal((await client.stream(name).head()).tail, 5, "answer");
      equal(
        asked,
        ["HEAD any.example manual Bearer t", "HEAD any.example follow Bearer t", "HEAD owner.example manual Bearer t"],
        "requests",
      );
    },
  },
  {
    name: "fault: an event stream that is cut anywhere is resumed, each record once and in order",
    async run({ pico, durable, name, proxy }) {
      const count = 12;
      for (const bodyBytes of [0, 1, 60, 140, 200, 333]) {
        const records = pico.stream(`${name}/${bodyBytes}`);
        await records.create({ contentType: "application/json" });
        let cuts = 0;
        const rule: FaultRule = ({ target }) => (target.includes("live=sse") && cuts++ < 3 ? { kind: "cut", bodyBytes } : PASS);
        const faulty = await proxy("pico", rule);
        const other = await proxy("durable", (request) =>
          request.target.includes("live=sse") && request.target.length % 2 === 0 ? PASS : rule(request, 0),
        );
        const viaPico = collect(new PicoClient({ url: faulty.url }).stream(records.name), "sse");
        const viaDurable = all(new DurableStreamsClient({ url: other.url }).stream(records.name).follow({ live: "sse" }));
        for (let index = 0; index < count; index++) await records.append(`{"n":${index}}`, { close: index === count - 1 });
        const expected = Array.from({ length: count }, (_, index) => `{"n":${index}}`);
        equal(await viaPico, expected, `pico, cut at ${bodyBytes}`);
        equal(
          (await viaDurable).flatMap((page) => page.json()).map((value) => JSON.stringify(value)),
          expected,
          `durable, cut at ${bodyBytes}`,
        );
        equal((await durable.stream(records.name).read()).json().length, count, "records");
      }
    },
  },
  {
    name: "fault: an event stream that is silent is taken for broken, and read on",
    async run({ pico, name, proxy }) {
      const stream = pico.stream(name);
      await stream.create();
      // The head and the first event come, then nothing: neither data nor the end.
      const faulty = await proxy(
        "pico",
        once({ kind: "stall" }, (_method, target) => target.includes("live=sse")),
      );
      const reads = collect(new PicoClient({ url: faulty.url, silenceMs: 150 }).stream(name), "sse");
      while (!faulty.requests.some(({ target }) => target.includes("live=sse"))) await new Promise((resolve) => setTimeout(resolve, 5));
      await stream.append("a", { close: true });
      equal(await reads, ["a"], "records");
    },
  },
  {
    name: "fault: a server that ends live answers at once is not asked without a pause",
    async run({ pico, name, proxy }) {
      const stream = pico.stream(name);
      await stream.create();
      for (const [live, status, body] of [
        ["long-poll", 204, ""],
        ["sse", 200, 'event: control\ndata:{"next_seq":0,"up_to_date":true}\n\n'],
      ] as const) {
        const clock = new ImpatientClock();
        const headers = { "pico-next-seq": "0", "pico-up-to-date": "true" };
        const abort = new AbortController();
        let lives = 0;
        const hasty = await proxy("pico", ({ target }) => {
          if (!target.includes("live=")) return PASS;
          lives += 1;
          if (lives === 8) abort.abort();
          return { kind: "answer", status, headers, body };
        });
        const client = new PicoClient({ url: hasty.url, seams: impatientSeams(clock) });
        await all(client.stream(name).follow({ live, signal: abort.signal })).catch(() => undefined);
        equal(clock.pauses.slice(0, 6), [50, 100, 200, 400, 800, 1600], live);
      }
    },
  },
  {
    name: "fault: pages that skip or repeat records, and answers that are none, are refused",
    async run({ name, proxy }) {
      const answers: readonly [status: number, headers: Record<string, string>, body: string][] = [
        [200, { "pico-next-seq": "3" }, "\u0001\u0000\u0000\u0000\u0000"],
        [200, { "pico-next-seq": "0" }, "\u0002\u0000\u0000\u0000\u0000"],
        [200, { "pico-next-seq": "0" }, "<html>"],
        [200, { "pico-next-seq": "18446744073709551615" }, "\u0001\u0000\u0000\u0000\u0000"],
        [200, {}, "\u0001\u0000\u0000\u0000\u0000"],
      ];
      for (const [status, headers, body] of answers) {
        const odd = await proxy("pico", () => ({ kind: "answer", status, headers, body }));
        await refusal(new PicoClient({ url: odd.url }).stream(name).read(), "malformed_answer");
        equal(odd.requests.length, 1, "not repeated");
      }
      const gateway = await proxy("pico", () => ({ kind: "answer", status: 502, body: "<html>bad gateway</html>" }));
      const client = new PicoClient({ url: gateway.url, retry: { attemptsMax: 2, pauseMsMin: 1 } });
      const read = await refusal(client.stream(name).read(), "unavailable");
      equal([read.status, read.isRetryable, read.isOutcomeUnknown, gateway.requests.length], [502, true, false, 2], "a read");
      const append = await refusal(client.stream(name).append("a"), "unavailable");
      equal([append.isRetryable, append.isOutcomeUnknown], [false, true], "an append");
    },
  },
  {
    name: "fault: over kills of the server, producer and live reads carry each record once and in order",
    async run({ name, ownServer }) {
      const server = await ownServer();
      // A crowded machine takes its time to start a server.
      const retry = { attemptsMax: 1000, totalMs: 300_000, pauseMsMax: 200 };
      const stream = new PicoClient({ url: server.picoUrl, retry }).stream(name);
      await stream.create({ contentType: "application/json" });
      const durable = new DurableStreamsClient({ url: server.durableStreamsUrl, retry }).stream(name);
      const reads = Promise.all([
        collect(stream, "long-poll"),
        collect(stream, "sse"),
        ...(["long-poll", "sse"] as const).map(async (live) => {
          const pages = await all(durable.follow({ live }));
          return pages.flatMap((page) => page.json()).map((value) => JSON.stringify(value));
        }),
      ]);
      const isOver = { value: false };
      const producer = stream.producer({ id: "p", batchRecordsMax: 20 });
      const written = writeUntil(producer, isOver);
      for (let kills = 1; kills <= 3; kills++) {
        // In the middle of it: each life of the server takes some records.
        while (producer.nextSeq < kills * 5) await new Promise((resolve) => setTimeout(resolve, 5));
        await server.restart();
      }
      isOver.value = true;
      const expected = Array.from({ length: await written }, (_, index) => `{"n":${index}}`);
      isTrue(expected.length > 20, "records were written");
      for (const [index, got] of (await reads).entries()) equal(got, expected, `reader ${index}`);
    },
  },
  {
    name: "fault: an outage longer than the bounds ends a live read and a producer with the error",
    async run({ name, ownServer }) {
      const server = await ownServer();
      const retry = { attemptsMax: 3, pauseMsMin: 1 };
      const stream = new PicoClient({ url: server.picoUrl, retry }).stream(name);
      await stream.create();
      const producer = stream.producer({ id: "p" });
      await producer.append("a");
      const reads = refusal(collect(stream, "long-poll"), "transport");
      await server.kill();
      const lost: StreamError = await refusal(producer.append("b"), "transport");
      equal([lost.facts.attempts, lost.isRetryable], [3, true], "producer");
      equal((await reads).isRetryable, true, "read");
      await server.revive();
      // Nothing of the failed batch reached the server: the same sequence is free, and says so either way.
      const resumed = stream.producer({ id: "p", firstSeq: producer.nextSeq });
      await resumed.append("b");
      equal(texts((await stream.read()).records), ["a", "b"], "records");
    },
  },
];

async function collect(stream: PicoStream, live: "long-poll" | "sse"): Promise<string[]> {
  return texts(await all(stream.records({ live })));
}

/** Numbered records until told to end; closes the stream. Resolves with how many there were. */
async function writeUntil(producer: PicoProducer, isOver: { readonly value: boolean }): Promise<number> {
  let count = 0;
  for (; !isOver.value; count++) {
    await producer.write(`{"n":${count}}`);
    if (count % 10 === 0) await producer.flush();
  }
  await producer.close({ closeStream: true });
  return count;
}

/** A response with fields that its constructor does not set. */
function shaped(response: Response, fields: Readonly<Record<string, unknown>>): Response {
  return Object.defineProperties(response, Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, { value }])));
}

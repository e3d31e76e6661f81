/** Durable Streams, without faults. */
import { equal, isTrue } from "../../pico/expect.ts";
import { type ClientCase, refusal, take } from "../client-suite.ts";

export const durableCases: readonly ClientCase[] = [
  {
    name: "durable: a create makes the stream once, with its settings, and finds it as it was made",
    async run({ durable, name }) {
      const expiresAt = new Date("2100-01-02T03:04:05Z");
      const stream = durable.stream(name);
      const first = await stream.create({ contentType: "text/plain", expiresAt, body: "ab" });
      equal(
        [first.isNew, first.contentType, first.expiresAtMs, first.isClosed],
        [true, "text/plain", expiresAt.getTime(), false],
        "created",
      );
      equal((await stream.create({ contentType: "text/plain", expiresAt })).isNew, false, "again");
      const error = await refusal(stream.create({ contentType: "text/plain" }), "conflict");
      equal([error.status, error.wireCode, error.isRetryable], [409, "conflict", false], "refusal");
      equal({ ...(await stream.head()) }.tail, first.tail, "head");
      equal((await durable.stream(`${name}/ttl`).create({ ttlSeconds: 5, close: true })).ttlSeconds, 5, "lifetime");
    },
  },
  {
    name: "durable: a fork has its source's records up to its offset, and a sub-offset beyond, bytes or values",
    async run({ durable, name }) {
      const source = durable.stream(`${name}/text`);
      await source.create({ contentType: "text/plain", ttlSeconds: 600 });
      const { next } = await source.append("abc");
      await source.append("defg");
      const fork = durable.stream(`${name}/f 1`);
      const made = await fork.create({ fork: { from: `${name}/text`, offset: next, subOffset: 2 } });
      equal([made.isNew, made.contentType, made.ttlSeconds], [true, "text/plain", 600], "inherited");
      await fork.append("!");
      equal((await fork.read()).text(), "abcde!", "bytes");
      equal((await source.read()).text(), "abcdefg", "source");
      const whole = durable.stream(`${name}/f2`);
      await whole.create({ fork: { from: `${name}/text` } });
      equal((await whole.read()).text(), "abcdefg", "at the tail");

      const values = durable.stream(`${name}/json`, { contentType: "application/json" });
      const { tail } = await values.create({ body: "[1]" });
      await values.appendJson([2, 3, 4]);
      const part = durable.stream(`${name}/part`);
      await part.create({ fork: { from: `${name}/json`, offset: tail, subOffset: 2 } });
      equal((await part.read()).json(), [1, 2, 3], "values");
    },
  },
  {
    name: "durable: a stream that was made anew, and is longer, is gone to whoever goes on to read the former one",
    async run({ durable, name }) {
      const stream = durable.stream(name);
      await stream.create({ body: "former" });
      const { next: from, streamTag } = await stream.read();
      const pages = stream.follow();
      equal((await pages.next()).value?.text(), "former", "first page");
      await pages.return(undefined);
      await stream.append(" and more");
      equal((await stream.read({ from, streamTag })).text(), " and more", "of the same life");
      await stream.delete();
      await stream.create({ body: "anew" });
      await stream.append(" and longer");
      await refusal(stream.read({ from, streamTag }), "gone");
      await refusal(take(stream.follow({ from, streamTag }), 1), "gone");
      equal((await stream.read({ from })).text(), " and longer", "without the tag");
    },
  },
  {
    name: "durable: wrong forks are refused, and a deleted source of a living fork is gone",
    async run({ durable, name }) {
      const source = durable.stream(`${name}/source`);
      await refusal(durable.stream(`${name}/f`).create({ fork: { from: `${name}/none` } }), "not_found");
      await source.create({ contentType: "text/plain", body: "abc" });
      const wrongType = { contentType: "text/html", fork: { from: `${name}/source` } };
      await refusal(durable.stream(`${name}/f`).create(wrongType), "conflict");
      await refusal(durable.stream(`${name}/f`).create({ fork: { from: `${name}/source`, offset: "9".repeat(20) } }), "bad_request");
      await durable.stream(`${name}/f`).create({ fork: { from: `${name}/source` } });
      equal(await source.delete(), true, "delete");
      const gone = await refusal(source.head(), "gone");
      equal([gone.status, gone.wireCode], [410, "offset_gone"], "gone");
      await refusal(source.append("x"), "gone");
      await refusal(source.read(), "gone");
      await refusal(source.create({ contentType: "text/plain" }), "conflict");
      equal((await durable.stream(`${name}/f`).read()).text(), "abc", "fork");
    },
  },
  {
    name: "durable: appends go with the stream's type, which is asked for once",
    async run({ durable, name, proxy }) {
      const { DurableStreamsClient } = await import("../../../src/client/index.ts");
      await durable.stream(name).create({ contentType: "text/plain" });
      const seen = await proxy("durable", () => ({ kind: "pass" }));
      const stream = new DurableStreamsClient({ url: seen.url }).stream(name);
      await stream.append("a");
      await stream.append("b");
      equal(
        seen.requests.map(({ method }) => method),
        ["HEAD", "POST", "POST"],
        "requests",
      );
      await refusal(durable.stream(name, { contentType: "text/html" }).append("c"), "conflict");
      await refusal(stream.appendJson([1]), "unsupported");
      await refusal(stream.append(""), "bad_request");
      equal((await stream.read()).text(), "ab", "text");
    },
  },
  {
    name: "durable: JSON values are records of their own; what is no JSON is refused",
    async run({ durable, name }) {
      const stream = durable.stream(name, { contentType: "application/json" });
      await stream.create();
      await stream.appendJson([[1, 2], { a: "ü" }]);
      await stream.append('{"b":[1]}');
      const page = await stream.read();
      equal(page.json(), [[1, 2], { a: "ü" }, { b: [1] }], "values");
      await refusal(stream.append("{"), "bad_request");
      await refusal(stream.appendJson([]), "bad_request");
      await refusal(stream.appendJson([undefined]), "bad_request");
      await refusal(stream.appendJson([1n]), "bad_request");
      equal((await stream.read({ from: page.next })).json(), [], "nothing more");
    },
  },
  {
    name: "durable: Stream-Seq must rise",
    async run({ durable, name }) {
      const stream = durable.stream(name);
      await stream.create();
      await stream.append("a", { streamSeq: "0002" });
      const error = await refusal(stream.append("b", { streamSeq: "0002" }), "conflict");
      equal(error.isOutcomeUnknown, false, "certain");
      await stream.append("c", { streamSeq: "0003" });
      equal((await stream.read()).text(), "ac", "text");
    },
  },
  {
    name: "durable: a closed stream refuses appends and names its tail; a close can be repeated",
    async run({ durable, name }) {
      const stream = durable.stream(name);
      await stream.create();
      const { next, isClosed } = await stream.append("a", { close: true });
      equal(isClosed, true, "append and close");
      const error = await refusal(stream.append("b"), "closed");
      equal([error.facts, error.wireCode], [{ tail: next }, "closed"], "refusal");
      equal((await stream.close()).isClosed, true, "again");
      isTrue((await stream.read({ from: "tail" })).isEnd, "end");
    },
  },
  {
    name: "durable: missing streams are not found, tokens that are none are refused",
    async run({ durable, name }) {
      const stream = durable.stream(name);
      const calls = [stream.head(), stream.append("a"), stream.read(), stream.close()];
      await Promise.all(calls.map((call) => refusal(call, "not_found")));
      equal(await stream.delete(), false, "delete");
      await stream.create();
      await refusal(stream.read({ from: "x&y" }), "bad_request");
      equal(await stream.delete(), true, "delete");
    },
  },
  {
    name: "durable: what was trimmed over the other protocol is gone",
    async run({ pico, durable, name }) {
      const stream = durable.stream(name);
      await stream.create({ contentType: "text/plain" });
      const { next } = await stream.append("a");
      await stream.append("b");
      await stream.append("c");
      await pico.stream(name).trim(2);
      equal((await refusal(stream.read({ from: next }), "offset_gone")).status, 410, "status");
      equal((await stream.read()).text(), "c", "from the start");
    },
  },
  {
    name: "both: one stream, two protocols, the same records",
    async run({ pico, durable, name }) {
      const records = pico.stream(name);
      await records.create({ contentType: "application/json" });
      await records.append([{ key: "k", body: '{"a":1}' }, "[2]"]);
      const stream = durable.stream(name);
      await stream.appendJson([[3]]);
      equal((await stream.read()).json(), [{ a: 1 }, [2], [3]], "over Durable Streams");
      equal(
        (await records.read()).records.map((record) => record.json()),
        [{ a: 1 }, [2], [3]],
        "over Pico",
      );
    },
  },
];

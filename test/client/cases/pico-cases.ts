/** The Pico protocol, without faults. */
import type { PicoRecord } from "../../../src/client/index.ts";
import { equal, isTrue } from "../../pico/expect.ts";
import { all, type ClientCase, refusal, take } from "../client-suite.ts";

const bytes = (...values: number[]) => new Uint8Array(values);

/** A record in plain values. */
const plain = ({ seq, key, headers, body }: PicoRecord) => ({
  seq,
  key: key === null ? null : [...key],
  headers: headers.map(({ name, value }) => [name, value === null ? null : [...value]]),
  body: body === null ? null : [...body],
});

const texts = (records: readonly PicoRecord[]) => records.map((record) => record.text());

export const picoCases: readonly ClientCase[] = [
  {
    name: "pico: a create makes the stream once, and finds it as it was made",
    async run({ pico, name }) {
      const stream = pico.stream(name);
      const first = await stream.create({ contentType: "text/plain; charset=utf-8", ttlSeconds: 3600, body: "first" });
      equal(
        { ...first },
        {
          isNew: true,
          contentType: "text/plain; charset=utf-8",
          start: 0,
          tail: 1,
          isClosed: false,
          ttlSeconds: 3600,
          expiresAtMs: null,
        },
        "created",
      );
      equal((await stream.create({ contentType: "text/plain", ttlSeconds: 3600, body: "again" })).isNew, false, "again");
      equal(texts((await stream.read()).records), ["first"], "records");
      const error = await refusal(stream.create({ contentType: "text/html", ttlSeconds: 3600 }), "conflict");
      equal([error.status, error.isRetryable, error.isOutcomeUnknown, error.wireCode], [409, false, false, "conflict"], "facts");
    },
  },
  {
    name: "pico: a stream is created closed, with an expiry, and head tells all of it",
    async run({ pico, name }) {
      const expiresAt = new Date("2100-01-02T03:04:05.678Z");
      const stream = pico.stream(name);
      await stream.create({ close: true, expiresAt, body: bytes(0, 255) });
      const state = { contentType: "application/octet-stream", start: 0, tail: 1, isClosed: true, ttlSeconds: null };
      equal({ ...(await stream.head()) }, { ...state, expiresAtMs: expiresAt.getTime() }, "head");
      const closed = await refusal(stream.append("late"), "closed");
      equal(closed.facts, { tail: 1 }, "facts");
      await refusal(stream.create({ ttlSeconds: 1, expiresAt }), "bad_request");
    },
  },
  {
    name: "pico: records come back as they were appended: keys, headers, null and empty apart, any bytes",
    async run({ pico, name }) {
      const stream = pico.stream(name);
      await stream.create();
      const result = await stream.append([
        "text \u{feff}ü",
        bytes(0, 128, 255),
        { key: "k", headers: [{ name: "h", value: "v" }, { name: "h" }, { name: "b", value: bytes(255) }], body: "" },
        { key: "", body: null },
        {},
      ]);
      equal([result.start, result.next, result.isClosed, result.isDuplicate, result.producerSeq], [0, 5, false, false, null], "append");
      const { records, next, isUpToDate, isEnd } = await stream.read();
      equal([next, isUpToDate, isEnd], [5, true, false], "page");
      equal(
        records.map(plain),
        [
          { seq: 0, key: null, headers: [], body: [...new TextEncoder().encode("text \u{feff}ü")] },
          { seq: 1, key: null, headers: [], body: [0, 128, 255] },
          {
            seq: 2,
            key: [107],
            headers: [
              ["h", [118]],
              ["h", null],
              ["b", [255]],
            ],
            body: [],
          },
          { seq: 3, key: [], headers: [], body: null },
          { seq: 4, key: null, headers: [], body: null },
        ],
        "records",
      );
      isTrue(
        records.every(({ timestampMs }) => timestampMs === result.timestampMs),
        "one time for a batch",
      );
      const [viaEvents] = await take(stream.follow({ live: "sse", from: 5 }), 1);
      equal(viaEvents?.next, 5, "tail");
      const following = take(stream.records({ live: "sse", from: 5 }), 2);
      await stream.append([{ key: bytes(255), headers: [{ name: "b", value: bytes(255) }], body: bytes(254) }, { body: null }]);
      equal(
        (await following).map(plain),
        [
          { seq: 5, key: [255], headers: [["b", [255]]], body: [254] },
          { seq: 6, key: null, headers: [], body: null },
        ],
        "records of an event stream",
      );
    },
  },
  {
    name: "pico: a conditional append succeeds at its tail only, and a refusal names the tail",
    async run({ pico, name }) {
      const stream = pico.stream(name);
      await stream.create();
      const { next } = await stream.append("a", { expectedTail: 0 });
      const error = await refusal(stream.append("b", { expectedTail: 0 }), "match_failed");
      equal([error.status, error.facts], [412, { tail: next }], "refusal");
      const last = await stream.append(["b", "c"], { expectedTail: next, close: true });
      equal([last.start, last.next, last.isClosed], [1, 3, true], "append and close");
      equal(texts((await stream.read()).records), ["a", "b", "c"], "records");
      await refusal(stream.append([]), "bad_request");
    },
  },
  {
    name: "pico: a close is for ever, and can be repeated",
    async run({ pico, name }) {
      const stream = pico.stream(name);
      await stream.create();
      await stream.append("a");
      await refusal(stream.close({ expectedTail: 0 }), "match_failed");
      equal((await stream.close({ expectedTail: 1 })).isClosed, true, "first");
      const again = await stream.close();
      equal([again.isClosed, again.next, again.start], [true, 1, null], "again");
      const page = await stream.read({ from: 1 });
      equal([page.records.length, page.isEnd], [0, true], "end");
    },
  },
  {
    name: "pico: pages are as small as asked, and begin at the start, the tail or a sequence",
    async run({ pico, name }) {
      const stream = pico.stream(name);
      await stream.create();
      await stream.append(["a", "b", "c", "d"]);
      const first = await stream.read({ recordsMax: 3 });
      equal([texts(first.records), first.next, first.isUpToDate], [["a", "b", "c"], 3, false], "count");
      const second = await stream.read({ from: 1, bytesMax: 1 });
      equal([texts(second.records), second.next], [["b"], 2], "bytes");
      const tail = await stream.read({ from: "tail" });
      equal([tail.records.length, tail.next, tail.isUpToDate], [0, 4, true], "tail");
      await refusal(stream.read({ from: 5 }), "bad_request");
      equal(texts(await all(stream.records({ live: "off", recordsMax: 1 }))), ["a", "b", "c", "d"], "page by page");
    },
  },
  {
    name: "pico: what was trimmed is gone, the refusal says where to go on, and the start moves with the trim",
    async run({ pico, name }) {
      const stream = pico.stream(name);
      await stream.create();
      await stream.append(["a", "b", "c"]);
      equal(await stream.trim(2), { start: 2 }, "trim");
      equal(await stream.trim(1), { start: 2 }, "never back");
      const error = await refusal(stream.read({ from: 1 }), "offset_gone");
      equal([error.status, error.facts], [410, { start: 2 }], "refusal");
      equal(texts((await stream.read()).records), ["c"], "start");
      await refusal(all(stream.follow({ from: 0, live: "sse" })), "offset_gone");
      equal((await stream.head()).start, 2, "head");
    },
  },
  {
    name: "pico: a stream that was made anew, and is longer, is gone to whoever goes on to read the former one",
    async run({ pico, name }) {
      const stream = pico.stream(name);
      await stream.create();
      await stream.append(["0", "1", "2"]);
      const pages = stream.follow({ live: "off", recordsMax: 1 });
      const first = (await pages.next()).value;
      const { next: from, streamTag } = await stream.read({ recordsMax: 1 });
      await stream.delete();
      await stream.create();
      await stream.append(["x", "y", "z"]);
      equal(first?.records[0]?.text(), "0", "of the former one");
      const error = await refusal(pages.next(), "gone");
      equal([error.isRetryable, error.status], [false, null], "facts");
      await refusal(stream.read({ from, streamTag }), "gone");
      await refusal(take(stream.follow({ from, streamTag }), 1), "gone");
      equal((await stream.read({ from })).records.length, 2, "without the tag it is a position as any");
    },
  },
  {
    name: "pico: a deleted stream is not found, and a delete tells whether there was one",
    async run({ pico, name }) {
      const stream = pico.stream(name);
      await stream.create();
      equal([await stream.delete(), await stream.delete()], [true, false], "deletes");
      const calls = [stream.head(), stream.append("a"), stream.read(), stream.trim(0), all(stream.follow())];
      const errors = await Promise.all(calls.map((call) => refusal(call, "not_found")));
      equal(
        errors.map(({ status }) => status),
        [404, 404, 404, 404, 404],
        "statuses",
      );
    },
  },
  {
    name: "pico: every name reaches its own stream, and what cannot be a name is refused before it is sent",
    async run({ pico, name }) {
      const names = ["", "/", "//", "//a", "/ü ö", "/%61", "/a?b=c", "/a#b", "/.x", "/a%2Fb", "/+"].map((tail) => name + tail);
      for (const one of names) await pico.stream(one).create({ contentType: "text/plain", body: one });
      for (const one of names) equal(texts((await pico.stream(one).read()).records), [one], one);
      equal(pico.stream("a/b").name, "/a/b", "slash");
      for (const wrong of ["/", "", "/a/../b", "/.", "/a\n", `/${"x".repeat(1024)}`, "/\u{d800}"]) {
        await refusal(
          Promise.resolve().then(() => pico.stream(wrong)),
          "bad_request",
        );
      }
    },
  },
  {
    name: "pico: the list comes page by page, below a prefix, in byte order, with settings and ends",
    async run({ pico, name }) {
      const names = ["/b", "/a", "/c/d", "/c"].map((tail) => name + tail);
      for (const one of names) await pico.stream(one).create({ contentType: "text/plain", ttlSeconds: 60 });
      await pico.stream(`${name}/a`).append("x");
      const items = await all(pico.list({ prefix: `${name}/`, pageSize: 2 }));
      equal(
        items.map((item) => item.name),
        names.toSorted(),
        "names",
      );
      equal(
        { ...items[0] },
        {
          name: `${name}/a`,
          contentType: "text/plain",
          isClosed: false,
          ttlSeconds: 60,
          expiresAtMs: null,
          start: 0,
          tail: 1,
        },
        "item",
      );
      equal(
        (await all(pico.list({ prefix: `${name}/`, after: `${name}/b` }))).map((item) => item.name),
        [`${name}/c`, `${name}/c/d`],
        "after",
      );
      const page = await pico.listPage({ prefix: `${name}/`, pageSize: 3 });
      equal([page.items.length, page.next !== null], [3, true], "page");
      await refusal(pico.listPage({ cursor: "!" }), "bad_request");
    },
  },
  {
    name: "pico: a handle of another protocol's listener says so",
    async run({ server, pico, name }) {
      await pico.stream(name).create();
      const { PicoClient } = await import("../../../src/client/index.ts");
      const wrong = new PicoClient({ url: server.durableStreamsUrl }).stream(name);
      await refusal(wrong.head(), "malformed_answer");
      await refusal(wrong.read(), "malformed_answer");
    },
  },
];

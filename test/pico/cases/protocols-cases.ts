/** §13: one stream, two protocols. */
import { equal, isTrue, refused, status } from "../expect.ts";
import type { CaseList } from "../suite.ts";

const JSON_TYPE = { "content-type": "application/json" };
const TEXT = { "content-type": "text/plain" };

export const protocolsCases: CaseList = [
  {
    sections: ["13.1"],
    name: "the stored type is the creator's, verbatim",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, { "content-type": 'Text/Plain; Charset="utf-8"' });
      equal((await pico.head(name)).headers.get("content-type"), 'Text/Plain; Charset="utf-8"', "Content-Type");
    },
  },
  {
    sections: ["13.1"],
    name: "a Durable Streams append is one Pico record; JSON arrays are one record an element, text kept",
    needsDurableStreams: true,
    async run({ pico, durableStreams, newName }) {
      const text = newName();
      await durableStreams.put(text, TEXT);
      await durableStreams.post(text, "[1, 2]", TEXT);
      equal(
        (await pico.records(text)).map(({ body }) => body),
        ["[1, 2]"],
        "text stream",
      );
      const json = newName();
      await durableStreams.put(json, JSON_TYPE);
      status(await durableStreams.post(json, ' [ {"b":1.0,"a":9007199254740993} , [1, 2], "x y" ] ', JSON_TYPE), 204, "append");
      status(await durableStreams.post(json, '{ "k" : [ 1e400 ] }', JSON_TYPE), 204, "append of one");
      const records = await pico.records(json);
      equal(
        records.map(({ body }) => body),
        ['{"b":1.0,"a":9007199254740993}', "[1,2]", '"x y"', '{"k":[1e400]}'],
        "JSON stream",
      );
      isTrue(
        records.every((record) => record.key === undefined && record.headers === undefined && record.timestamp > 0),
        "no key, no headers",
      );
    },
  },
  {
    sections: ["13.1"],
    name: "a Pico record is its body for Durable Streams: joined as JSON or one behind the other",
    needsDurableStreams: true,
    async run({ pico, durableStreams, newName }) {
      const json = newName();
      await pico.put(json, JSON_TYPE);
      const batch = { records: [{ key: "k", headers: [{ name: "h", value: "v" }], body: '{"a":1}' }, { body: "2" }] };
      await pico.post(json, JSON.stringify(batch), { "content-type": "application/vnd.picomq.batch+json" });
      equal((await durableStreams.get(json)).text, '[{"a":1},2]', "JSON");
      const text = newName();
      await pico.fill(text, ["ab", "cd"]);
      equal((await durableStreams.get(text)).text, "abcd", "text");
    },
  },
  {
    sections: ["13.1"],
    name: "offsets are sequences in 20 digits; -1 is the start and now the tail",
    needsDurableStreams: true,
    async run({ pico, durableStreams, newName }) {
      const name = newName();
      await pico.fill(name, ["a", "b", "c"]);
      equal((await durableStreams.head(name)).headers.get("stream-next-offset"), "00000000000000000003", "tail");
      equal((await durableStreams.get(`${name}?offset=00000000000000000001`)).text, "bc", "from 1");
      for (const start of ["-1", "-7", "0000000000000000_0000000000000000"]) {
        equal((await durableStreams.get(`${name}?offset=${start}`)).text, "abc", start);
      }
      equal((await durableStreams.get(`${name}?offset=now`)).text, "", "now");
      await pico.post(name, "", { "pico-trim-seq": "2" });
      equal((await durableStreams.get(`${name}?offset=-1`)).text, "c", "the start after a trim");
      status(await durableStreams.get(`${name}?offset=00000000000000000001`), 410, "below the trim point");
    },
  },
  {
    sections: ["13.1"],
    name: "Durable Streams appends are compared with the stream's type, Pico's are not",
    needsDurableStreams: true,
    async run({ pico, durableStreams, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      status(await durableStreams.post(name, "{}", JSON_TYPE), 409, "another type");
      status(await durableStreams.post(name, "x", { "content-type": "TEXT/PLAIN; a=b" }), 204, "the same type");
      status(await pico.post(name, "{}", JSON_TYPE), 200, "Pico");
    },
  },
  {
    sections: ["13.1"],
    name: "closed flag, lifetime and producers are shared",
    needsDurableStreams: true,
    async run({ pico, durableStreams, newName }) {
      const name = newName();
      await pico.put(name, { ...TEXT, "pico-ttl": "100" });
      equal((await durableStreams.head(name)).headers.get("stream-ttl"), "100", "TTL");
      const picoProducer = { "pico-producer-id": "p", "pico-producer-epoch": "0", "pico-producer-seq": "0" };
      const producer = { ...TEXT, "producer-id": "p", "producer-epoch": "0", "producer-seq": "0" };
      status(await pico.post(name, "a", picoProducer), 200, "append");
      status(await durableStreams.post(name, "a", producer), 204, "its duplicate over the other protocol");
      status(await durableStreams.post(name, "b", { ...producer, "producer-seq": "1" }), 200, "the next one");
      status(await durableStreams.post(name, "", { "stream-closed": "true" }), 204, "close");
      refused(await pico.post(name, "c"), 409, "closed");
      const answer = await durableStreams.post(name, "c", TEXT);
      status(answer, 409, "closed over Durable Streams");
      equal([answer.headers.get("stream-closed"), answer.headers.get("stream-next-offset")], ["true", "00000000000000000002"], "headers");
    },
  },
  {
    sections: ["13.1"],
    name: "a live reader of one protocol sees appends of the other",
    needsDurableStreams: true,
    async run({ pico, durableStreams, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      const append = async () => {
        await Bun.sleep(100);
        await durableStreams.post(name, "over the other", TEXT);
      };
      const [answer] = await Promise.all([pico.get(`${name}?live=long-poll&format=raw`), append()]);
      equal(answer.text, "over the other", "body");
    },
  },
  {
    sections: ["13.1"],
    name: "an empty JSON array is 400 on append and no record on create",
    needsDurableStreams: true,
    async run({ pico, durableStreams, newName }) {
      const name = newName();
      status(await durableStreams.put(name, JSON_TYPE, "[]"), 201, "create");
      equal((await pico.head(name)).headers.get("pico-next-seq"), "0", "tail");
      status(await durableStreams.post(name, "[]", JSON_TYPE), 400, "append");
      status(await durableStreams.post(name, "{", JSON_TYPE), 400, "no JSON");
    },
  },
  {
    sections: ["13.1", "2"],
    name: "a deleted source of living forks is gone: 410 on access, 409 on creation, until the last fork goes",
    needsDurableStreams: true,
    async run({ pico, durableStreams, newName }) {
      const [source, fork] = [newName(), newName()];
      await pico.fill(source, ["a", "b"]);
      status(await durableStreams.put(fork, { ...TEXT, "stream-forked-from": source }), 201, "fork");
      status(await pico.delete(source), 204, "delete");
      refused(await pico.get(source), 410, "gone", "GET");
      refused(await pico.post(source, "x"), 410, "gone", "POST");
      refused(await pico.put(source, TEXT), 409, "gone", "PUT");
      status(await pico.head(source), 410, "HEAD");
      status(await pico.delete(source), 410, "DELETE");
      equal(
        (await pico.records(fork)).map(({ body }) => body),
        ["a", "b"],
        "the fork",
      );
      status(await pico.delete(fork), 204, "delete of the fork");
      const startedMs = Date.now();
      while ((await pico.head(source)).status !== 404 && Date.now() - startedMs < 5000) await Bun.sleep(50);
      status(await pico.put(source, TEXT), 201, "the name is free again");
    },
  },
];

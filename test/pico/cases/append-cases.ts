/** §4 and §6: append, match, close, trim; §12.1: binary batches. */
import { equal, isTrue, matches, refused, status } from "../expect.ts";
import type { CaseList } from "../suite.ts";

const TEXT = { "content-type": "text/plain" };
const JSON_BATCH = { "content-type": "application/vnd.picomq.batch+json" };
const BINARY_BATCH = { "content-type": "application/vnd.picomq.batch" };

/** The worked append of §12.4. */
const WORKED_APPEND = Uint8Array.fromHex(
  "0100000002" + "000000026b31" + "00000001000000017400000002" + "6162" + "000000026869" + "ffffffff00000000" + "00000002ff00",
);

export const appendCases: CaseList = [
  {
    sections: ["4.1", "4.4"],
    name: "a body is one record whatever its type; the answer has sequences and timestamp",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      for (const [index, type] of ["text/plain", "application/json", "", "image/png"].entries()) {
        const answer = await pico.post(name, "[1,2]", { "content-type": type });
        status(answer, 200);
        equal(answer.text, "", "body");
        equal(answer.headers.get("pico-start-seq"), String(index), "Pico-Start-Seq");
        equal(answer.headers.get("pico-next-seq"), String(index + 1), "Pico-Next-Seq");
        matches(answer.headers.get("pico-timestamp"), /^\d{13}$/, "Pico-Timestamp");
      }
      equal(
        (await pico.records(name)).map(({ body }) => body),
        Array(4).fill("[1,2]"),
        "bodies",
      );
    },
  },
  {
    sections: ["4.1"],
    name: "every byte value comes back as it went",
    async run({ pico, newName }) {
      const name = newName();
      const body = Uint8Array.from({ length: 256 }, (_, i) => i);
      await pico.put(name);
      await pico.post(name, body);
      equal((await pico.get(`${name}?format=raw`)).bytes, body, "bytes");
    },
  },
  {
    sections: ["4.1"],
    name: "Pico-Key is the key of a single record; an empty one is an empty key",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      await pico.rawRequest("POST", name, { "pico-key": "k1" }, "a");
      await pico.rawRequest("POST", name, { "pico-key": "" }, "b");
      await pico.rawRequest("POST", name, {}, "c");
      equal(
        (await pico.records(name)).map(({ key }) => key),
        ["k1", "", undefined],
        "keys",
      );
    },
  },
  {
    sections: ["4.1"],
    name: "an empty body without Pico-Closed is 400",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      refused(await pico.post(name, ""), 400, "bad_request");
      refused(await pico.post(name, "", { "pico-closed": "yes" }), 400, "bad_request", "a value that is not true");
    },
  },
  {
    sections: ["4.2"],
    name: "a JSON batch: text, base64, keys, headers in order with repeats, null bodies",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      const headers = [
        { name: "t", value: "ab" },
        { name: "t", value_b64: "/w==" },
        { name: "n", value: null },
      ];
      const records = [{ key: "k1", headers, body: "hi" }, { body_b64: "/wA=" }, { body: null }, { key: "", body: "" }];
      const answer = await pico.post(name, JSON.stringify({ records, ignored: 1 }), JSON_BATCH);
      status(answer, 200);
      equal(answer.headers.get("pico-start-seq"), "0", "Pico-Start-Seq");
      equal(answer.headers.get("pico-next-seq"), "4", "Pico-Next-Seq");
      const timestamp = Number(answer.headers.get("pico-timestamp"));
      equal(
        await pico.records(name),
        [
          { seq: 0, timestamp, key: "k1", headers, body: "hi" },
          { seq: 1, timestamp, body_b64: "/wA=" },
          { seq: 2, timestamp, body: null },
          { seq: 3, timestamp, key: "", body: "" },
        ],
        "records",
      );
    },
  },
  {
    sections: ["4.2"],
    name: "a wrong JSON batch is 400 and writes nothing, not even its good records",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      for (const batch of [
        "{",
        "[]",
        "{}",
        '{"records":[]}',
        '{"records":{}}',
        '{"records":[{"body":"good"},1]}',
        '{"records":[{"body":"good"},{"body":1}]}',
        '{"records":[{"body_b64":"/w"}]}',
        '{"records":[{"headers":[{"value":"x"}]}]}',
      ]) {
        refused(await pico.post(name, batch, JSON_BATCH), 400, "bad_request", batch);
      }
      const answer = await pico.post(name, '{"records":[{"headers":{"t":"ab"}}]}', JSON_BATCH);
      refused(answer, 400, "bad_request", "headers as an object");
      matches((answer.json() as { message: string }).message, /\[\{"name":/, "the list form in the message");
      equal((await pico.head(name)).headers.get("pico-next-seq"), "0", "tail");
    },
  },
  {
    sections: ["4.2", "12.1"],
    name: "10,000 records and 256 headers are allowed; one more is 400 and names the limit",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      const batch = (count: number) => JSON.stringify({ records: Array(count).fill({ body: "x" }) });
      equal((await pico.post(name, batch(10_000), JSON_BATCH)).headers.get("pico-next-seq"), "10000", "10,000 records");
      const answer = await pico.post(name, batch(10_001), JSON_BATCH);
      refused(answer, 400, "bad_request", "10,001 records");
      matches(answer.text, /10000/, "message");
      const headers = (count: number) => JSON.stringify({ records: [{ headers: Array(count).fill({ name: "n" }), body: "x" }] });
      status(await pico.post(name, headers(256), JSON_BATCH), 200, "256 headers");
      refused(await pico.post(name, headers(257), JSON_BATCH), 400, "bad_request", "257 headers");
    },
  },
  {
    sections: ["4.4"],
    name: "timestamps never fall within a stream, and one request has one",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      for (let i = 0; i < 20; i++) await pico.post(name, '{"records":[{"body":"a"},{"body":"b"}]}', JSON_BATCH);
      const times = (await pico.records(name)).map(({ timestamp }) => timestamp);
      for (let i = 1; i < times.length; i++) isTrue((times[i] ?? 0) >= (times[i - 1] ?? 0), `timestamp ${i} does not fall`);
      for (let i = 0; i < times.length; i += 2) equal(times[i], times[i + 1], "timestamps of one request");
    },
  },
  {
    sections: ["4.1", "4.4"],
    name: "parallel appends get sequences that are a permutation of 0 to n-1 and match the readback",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      const answers = await Promise.all(Array.from({ length: 100 }, (_, i) => pico.post(name, `r${i}`)));
      const bySeq = new Map(answers.map((answer, i) => [Number(answer.headers.get("pico-start-seq")), `r${i}`]));
      equal(bySeq.size, 100, "distinct sequences");
      const records = await pico.records(name);
      equal(
        records.map(({ body }) => body),
        Array.from({ length: 100 }, (_, seq) => bySeq.get(seq)),
        "records",
      );
    },
  },
  {
    sections: ["4.3", "5"],
    name: "a duplicate is acknowledged even on a closed stream and with a failing match",
    async run({ pico, newName }) {
      const name = newName();
      const producer = { "pico-producer-id": "p", "pico-producer-epoch": "0", "pico-producer-seq": "0" };
      await pico.put(name, TEXT);
      await pico.post(name, "a", producer);
      status(await pico.post(name, "a", { ...producer, "pico-match-seq": "7" }), 200, "with a failing match");
      await pico.post(name, "", { "pico-closed": "true" });
      const answer = await pico.post(name, "a", producer);
      status(answer, 200, "on a closed stream");
      equal(answer.headers.get("pico-start-seq"), null, "Pico-Start-Seq");
      equal(answer.headers.get("pico-closed"), "true", "Pico-Closed");
    },
  },
  {
    sections: ["4.3"],
    name: "syntax is judged before the stream is looked for, closed before match",
    async run({ pico, newName }) {
      refused(await pico.post(newName(), "x", { "pico-match-seq": "abc" }), 400, "bad_request", "missing stream, wrong header");
      const name = newName();
      await pico.put(name, { ...TEXT, "pico-closed": "true" });
      refused(await pico.post(name, "x", { "pico-match-seq": "9" }), 409, "closed", "closed stream, failing match");
    },
  },
  {
    sections: ["6"],
    name: "a match succeeds at the tail only, close-only requests included",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      status(await pico.post(name, "a", { "pico-match-seq": "0" }), 200, "at the tail");
      for (const value of ["0", "2", "18446744073709551615"]) {
        refused(await pico.post(name, "b", { "pico-match-seq": value }), 412, "match_failed", value);
      }
      refused(await pico.post(name, "", { "pico-match-seq": "0", "pico-closed": "true" }), 412, "match_failed", "close-only");
      status(await pico.post(name, "", { "pico-match-seq": "1", "pico-closed": "true" }), 200, "close-only at the tail");
    },
  },
  {
    sections: ["6"],
    name: "of racing matches on one tail exactly one succeeds",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => pico.post(name, String(i), { "pico-match-seq": "0" })));
      equal(answers.filter((answer) => answer.status === 200).length, 1, "successes");
      equal((await pico.head(name)).headers.get("pico-next-seq"), "1", "tail");
    },
  },
  {
    sections: ["6"],
    name: "close with a body appends first; without one it only closes, again and again",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      const answer = await pico.post(name, "last", { "pico-closed": "true" });
      status(answer, 200);
      equal([answer.headers.get("pico-start-seq"), answer.headers.get("pico-closed")], ["0", "true"], "sequence and closed");
      const again = await pico.post(name, "", { "pico-closed": "true" });
      status(again, 200, "close again");
      equal(
        [again.headers.get("pico-next-seq"), again.headers.get("pico-start-seq"), again.headers.get("pico-closed")],
        ["1", null, "true"],
        "headers",
      );
    },
  },
  {
    sections: ["6", "2"],
    name: "an append to a closed stream is 409 closed with its tail",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a"]);
      await pico.post(name, "", { "pico-closed": "true" });
      for (const headers of [{}, { "pico-closed": "true" }]) {
        const answer = await pico.post(name, "b", headers);
        refused(answer, 409, "closed");
        equal(answer.headers.get("pico-closed"), "true", "Pico-Closed");
        equal((answer.json() as { next_seq: number }).next_seq, 1, "next_seq");
      }
    },
  },
  {
    sections: ["6"],
    name: "trim moves the start, is clamped to the tail, never goes back, and needs an empty body",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a", "b", "c"]);
      const trim = (value: string) => pico.post(name, "", { "pico-trim-seq": value });
      const answer = await trim("1");
      status(answer, 200);
      equal([answer.headers.get("pico-start-seq"), answer.headers.get("pico-next-seq")], ["1", null], "only the start");
      equal((await trim("0")).headers.get("pico-start-seq"), "1", "backwards");
      refused(await pico.post(name, "x", { "pico-trim-seq": "2" }), 400, "bad_request", "with a body");
      equal((await trim("18446744073709551615")).headers.get("pico-start-seq"), "3", "clamped");
      equal((await pico.head(name)).headers.get("pico-start-seq"), "3", "HEAD");
      equal((await pico.post(name, "d")).headers.get("pico-start-seq"), "3", "the next record goes on counting");
    },
  },
  {
    sections: ["6"],
    name: "a trim works on a closed stream; an empty Pico-Trim-Seq is an append",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a", "b"]);
      equal((await pico.post(name, "c", { "pico-trim-seq": "" })).headers.get("pico-next-seq"), "3", "append");
      await pico.post(name, "", { "pico-closed": "true" });
      equal((await pico.post(name, "", { "pico-trim-seq": "2" })).headers.get("pico-start-seq"), "2", "trim");
    },
  },
  {
    sections: ["12.1", "12.4"],
    name: "the worked binary append is taken as it is written in the contract",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      const answer = await pico.post(name, WORKED_APPEND, BINARY_BATCH);
      status(answer, 200);
      const timestamp = Number(answer.headers.get("pico-timestamp"));
      equal(
        await pico.records(name),
        [
          { seq: 0, timestamp, key: "k1", headers: [{ name: "t", value: "ab" }], body: "hi" },
          { seq: 1, timestamp, body_b64: "/wA=" },
        ],
        "records",
      );
    },
  },
  {
    sections: ["12.1"],
    name: "a wrong binary batch is 400: version, cuts, trailing bytes, header names, the August layout",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      const wrong = [
        "02" + "00000000",
        "01",
        "0100000001",
        "010000000000",
        "0100000001fffffffe0000000000000000",
        "0100000001ffffffff0000000100000001ffffffffffffffffff",
        "0100000001000000000000000" + "26869",
        "01ffffffff",
      ];
      for (const hex of wrong) refused(await pico.post(name, Uint8Array.fromHex(hex), BINARY_BATCH), 400, "bad_request", hex);
      for (let end = 1; end < WORKED_APPEND.length; end += 3) {
        refused(await pico.post(name, WORKED_APPEND.slice(0, end), BINARY_BATCH), 400, "bad_request", `cut at ${end}`);
      }
      equal((await pico.head(name)).headers.get("pico-next-seq"), "0", "tail");
    },
  },
  {
    sections: ["12.1", "4.1"],
    name: "a binary batch of none is 400, and closes with Pico-Closed",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      const none = Uint8Array.fromHex("0100000000");
      refused(await pico.post(name, none, BINARY_BATCH), 400, "bad_request");
      const answer = await pico.post(name, none, { ...BINARY_BATCH, "pico-closed": "true" });
      status(answer, 200);
      equal([answer.headers.get("pico-closed"), answer.headers.get("pico-start-seq")], ["true", null], "headers");
    },
  },
];

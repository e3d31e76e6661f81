/** Producers of both protocols, without faults of the network. */
import { type ProducerOptions, StreamError } from "../../../src/client/index.ts";
import { equal, isTrue } from "../../pico/expect.ts";
import { all, type ClientCase, refusal } from "../client-suite.ts";

export const producerCases: readonly ClientCase[] = [
  {
    name: "producer: writers that share an id take it from each other, and no record is lost or comes twice",
    async run({ pico, name }) {
      const stream = pico.stream(name);
      await stream.create();
      const taken: number[] = [];
      const writers = ["a", "b", "c"].map((letter) => ({
        letter,
        // The same epoch to begin with: a first request may find that sequence taken by another.
        producer: stream.producer({ id: "shared", isShared: true, batchRecordsMax: 3, onBatch: (_, count) => taken.push(count) }),
      }));
      await Promise.all(
        writers.map(async ({ letter, producer }) => {
          for (let index = 0; index < 30; index++) await producer.append(`${letter}${index}`);
          await producer.close();
        }),
      );
      const texts = (await all(stream.records({ live: "off" }))).map((record) => record.text());
      equal(texts.length, 90, "records");
      for (const { letter } of writers) {
        const own = texts.filter((text) => text.startsWith(letter));
        equal(
          own,
          Array.from({ length: 30 }, (_, index) => `${letter}${index}`),
          `records of ${letter}, in order`,
        );
      }
      equal(
        taken.reduce((sum, count) => sum + count, 0),
        90,
        "told",
      );
    },
  },
  {
    name: "producer: one that shares its id does not take it back where a lost answer may have told that the batch is written",
    async run({ pico, name, proxy }) {
      const { PicoClient } = await import("../../../src/client/index.ts");
      const stream = pico.stream(name);
      await stream.create();
      let posts = 0;
      const lossy = await proxy("pico", ({ method }) => (method === "POST" && ++posts === 2 ? { kind: "lose-answer" } : { kind: "pass" }));
      const retry = { pauseMsMin: 300, pauseMsMax: 300 };
      const writer = new PicoClient({ url: lossy.url }).stream(name).producer({ id: "shared", isShared: true, retry });
      await writer.append("first");
      const lost = writer.append("second");
      while ((await stream.head()).tail < 2) await new Promise((resolve) => setTimeout(resolve, 5));
      // Before the writer comes again, another takes the id over.
      await stream.producer({ id: "shared", isShared: true, epoch: 5 }).append("other");
      const error = await refusal(lost, "fenced");
      isTrue(error.isOutcomeUnknown, "it may be written, and is");
      equal((await stream.head()).tail, 3, "and not twice");
    },
  },
  {
    name: "producer: messages are bodies of their own, on streams of any type",
    async run({ durable, name }) {
      const json = durable.stream(`${name}/json`);
      await json.create({ contentType: "application/json" });
      const next: string[] = [];
      const producer = json.messageProducer({ id: "p", onBatch: (result) => next.push(result.next) });
      await Promise.all(['{"a":1}', "[1,2]", "3"].map((text) => producer.write(text)));
      await producer.close();
      equal((await json.read()).json(), [{ a: 1 }, 1, 2, 3], "values");
      equal([next.length, next.at(-1)], [3, (await json.head()).tail], "a request each");
      const bytes = durable.stream(`${name}/bytes`);
      await bytes.create();
      const other = bytes.messageProducer({ id: "p" });
      await other.append("ab");
      equal((await bytes.read()).text(), "ab", "bytes");
    },
  },
  {
    name: "producer: records of one turn are one batch, each acknowledged with its sequence",
    async run({ pico, name }) {
      const stream = pico.stream(name);
      await stream.create();
      const producer = stream.producer({ id: "p" });
      const acks = await Promise.all(["a", "b", { key: "k", body: "c" }].map((record) => producer.append(record)));
      equal(
        acks.map(({ seq, producerSeq }) => [seq, producerSeq]),
        [
          [0, 0],
          [1, 0],
          [2, 0],
        ],
        "first batch",
      );
      equal((await producer.append("d")).producerSeq, 1, "second batch");
      equal([producer.epoch, producer.nextSeq, producer.pendingCount], [0, 2, 0], "state");
      await producer.close();
      equal(
        (await all(stream.records({ live: "off" }))).map((record) => record.text()),
        ["a", "b", "c", "d"],
        "records",
      );
    },
  },
  {
    name: "producer: thousands of writes are in order, in batches within their bounds",
    async run({ pico, name, proxy }) {
      const { PicoClient } = await import("../../../src/client/index.ts");
      const seen = await proxy("pico", () => ({ kind: "pass" }));
      const stream = new PicoClient({ url: seen.url }).stream(name);
      await stream.create();
      const limits = { batchRecordsMax: 100, batchBytesMax: 1500, queueRecordsMax: 200 };
      const producer = stream.producer({ id: "p", ...limits });
      for (let index = 0; index < 2000; index++) {
        await producer.write(`${index}`);
        isTrue(producer.pendingCount <= limits.queueRecordsMax, "the queue is bounded");
      }
      await producer.flush();
      equal(producer.pendingCount, 0, "flushed");
      await producer.close();
      const records = await all(pico.stream(name).records({ live: "off" }));
      equal(
        records.map((record) => record.text()),
        Array.from({ length: 2000 }, (_, index) => String(index)),
        "records",
      );
      const posts = seen.requests.filter(({ method }) => method === "POST");
      isTrue(
        posts.every(({ body }) => body.length <= limits.batchBytesMax + 5),
        "bytes of a batch",
      );
      isTrue(
        posts.every(({ body }) => new DataView(body.buffer, body.byteOffset).getUint32(1) <= limits.batchRecordsMax),
        "records of a batch",
      );
      equal(
        posts.map(({ headers }) => headers["pico-producer-seq"]),
        posts.map((_, index) => String(index)),
        "sequences",
      );
    },
  },
  {
    name: "producer: writes that nobody awaits are bounded too, and are refused beyond",
    async run({ pico, name }) {
      const stream = pico.stream(name);
      await stream.create();
      const producer = stream.producer({ id: "p", queueRecordsMax: 1000 });
      const outcomes = await Promise.allSettled(Array.from({ length: 11_002 }, (_, index) => producer.write(`${index}`)));
      const refused = outcomes.filter((outcome) => outcome.status === "rejected");
      equal(refused.length, 2, "1,000 are queued, 10,000 wait");
      isTrue(
        refused.every(({ reason }) => reason instanceof StreamError && reason.code === "queue_full"),
        "queue_full",
      );
      await producer.close();
      equal((await stream.head()).tail, 11_000, "all others are there");
    },
  },
  {
    name: "producer: a record larger than batch and queue goes alone",
    async run({ pico, name }) {
      const stream = pico.stream(name);
      await stream.create();
      const producer = stream.producer({ id: "p", batchBytesMax: 10, queueBytesMax: 10 });
      await Promise.all([producer.write("a"), producer.write("b".repeat(100)), producer.write("c")]);
      await producer.close();
      equal(
        (await stream.read()).records.map(({ body }) => body?.length),
        [1, 100, 1],
        "records",
      );
    },
  },
  {
    name: "producer: lone records wait for company as long as asked, and no longer than a flush",
    async run({ pico, name }) {
      const stream = pico.stream(name);
      await stream.create();
      const producer = stream.producer({ id: "p", lingerMs: 20_000, batchRecordsMax: 3 });
      const first = [producer.append("a")];
      await new Promise((resolve) => setTimeout(resolve, 20));
      first.push(producer.append("b"), producer.append("c"));
      equal(
        (await Promise.all(first)).map(({ producerSeq }) => producerSeq),
        [0, 0, 0],
        "a full batch goes at once",
      );
      await producer.write("d");
      equal((await stream.head()).tail, 3, "waits");
      await producer.flush();
      equal((await stream.head()).tail, 4, "flushed");
      await producer.write("e");
      await producer.close();
      equal((await stream.head()).tail, 5, "closed");
    },
  },
  {
    name: "producer: a higher epoch fences a lower one, whose writer ends with the epoch that it lost to",
    async run({ pico, name }) {
      const stream = pico.stream(name);
      await stream.create();
      const old = stream.producer({ id: "p", epoch: 1 });
      await old.append("a");
      await stream.producer({ id: "p", epoch: 3 }).append("b");
      const waiting = old.append("c");
      const error = await refusal(waiting, "fenced");
      equal([error.status, error.facts, error.wireCode, error.isRetryable], [403, { producerEpoch: 3 }, "fenced", false], "refusal");
      const later = [old.write("d"), old.append("d"), old.flush(), old.close()].map((call) => refusal(call, "fenced"));
      for (const same of await Promise.all(later)) isTrue(same === error, "the same");
      equal((await stream.head()).tail, 2, "nothing of it is there");
    },
  },
  {
    name: "producer: with claim it takes the epoch above, without it fails",
    async run({ pico, durable, name }) {
      const stream = pico.stream(name);
      await stream.create();
      await stream.producer({ id: "p", epoch: 7 }).append("a");
      const claiming = stream.producer({ id: "p", claim: true });
      equal((await claiming.append("b")).seq, 1, "written");
      equal([claiming.epoch, claiming.nextSeq], [8, 1], "epoch");
      const other = durable.stream(name).producer({ id: "p", claim: true });
      await other.append("c");
      equal(other.epoch, 9, "over the other protocol");
      // A claim is for the start: a writer that is fenced later stays out.
      await refusal(claiming.append("d"), "fenced");
    },
  },
  {
    name: "producer: an epoch that was used before is refused, not taken for a repeat",
    async run({ pico, durable, name }) {
      const stream = pico.stream(name);
      await stream.create();
      await stream.producer({ id: "p" }).append("a");
      const error = await refusal(stream.producer({ id: "p" }).append("b"), "conflict");
      equal(error.isRetryable, false, "for good");
      await refusal(durable.stream(name).producer({ id: "p" }).append("b"), "conflict");
      // To go on in an epoch is to say so.
      const resumed = stream.producer({ id: "p", firstSeq: 1 });
      equal((await resumed.append("c")).seq, 1, "resumed");
      equal((await stream.head()).tail, 2, "records");
    },
  },
  {
    name: "producer: a gap in the sequence names what is missing",
    async run({ pico, durable, name }) {
      const stream = pico.stream(name);
      await stream.create();
      await stream.producer({ id: "p" }).append("a");
      const error = await refusal(stream.producer({ id: "p", firstSeq: 4 }).append("b"), "sequence_gap");
      equal([error.status, error.facts], [409, { expectedSeq: 1, receivedSeq: 4 }], "pico");
      const other = await refusal(durable.stream(name).producer({ id: "p", firstSeq: 3 }).append("b"), "sequence_gap");
      equal([other.facts, other.wireCode], [{ expectedSeq: 1, receivedSeq: 3 }, "sequence_conflict"], "durable");
      await refusal(stream.append("x", { producer: { id: "new", epoch: 0, seq: 2 } }), "bad_request");
    },
  },
  {
    name: "producer: a stamp of one's own makes a single append repeatable",
    async run({ pico, durable, name }) {
      const stream = pico.stream(name);
      await stream.create();
      const producer = { id: "p", epoch: 0, seq: 0 };
      const first = await stream.append("a", { producer });
      equal([first.start, first.isDuplicate, first.producerSeq], [0, false, 0], "first");
      const again = await stream.append("a", { producer });
      equal([again.start, again.isDuplicate, again.producerSeq], [null, true, 0], "again");
      const other = await durable.stream(name).append("a", { producer });
      equal([other.isDuplicate, other.producerSeq], [true, 0], "over the other protocol");
      const last = await durable.stream(name).append("b", { producer: { ...producer, seq: 1 }, close: true });
      equal([last.isDuplicate, last.isClosed, last.producerSeq], [false, true, 1], "the next");
      equal((await stream.close({ producer: { ...producer, seq: 1 } })).isClosed, true, "a repeat of a close");
    },
  },
  {
    name: "producer: a close of the stream goes with the last batch, or alone",
    async run({ pico, durable, name }) {
      const stream = pico.stream(name);
      await stream.create();
      const producer = stream.producer({ id: "p", lingerMs: 10_000 });
      await producer.write("a");
      await producer.close({ closeStream: true });
      equal(producer.nextSeq, 1, "with the batch");
      equal([(await stream.head()).isClosed, (await stream.head()).tail], [true, 1], "closed");
      const alone = durable.stream(`${name}/2`);
      await alone.create();
      const empty = alone.producer({ id: "p" });
      await empty.append("a");
      const closing = empty.close({ closeStream: true });
      isTrue(closing === empty.close(), "closed once");
      await closing;
      equal([empty.nextSeq, (await alone.head()).isClosed], [2, true], "alone");
      await refusal(empty.write("b"), "producer_closed");
      await refusal(alone.producer({ id: "q" }).append("b"), "closed");
    },
  },
  {
    name: "producer: bytes are end to end, JSON values one by one, each kind of stream with its own producer",
    async run({ durable, name }) {
      const text = durable.stream(`${name}/text`, { contentType: "text/plain" });
      await text.create();
      const plain = text.producer({ id: "p" });
      await Promise.all(["ab", "c", new Uint8Array([100])].map((record) => plain.write(record)));
      await plain.close();
      equal((await text.read()).text(), "abcd", "text");
      await refusal(plain.append(""), "producer_closed");
      await refusal(text.producer({ id: "q" }).append(""), "bad_request");
      await refusal(text.jsonProducer({ id: "q" }).append({}), "unsupported");

      const json = durable.stream(`${name}/json`);
      await json.create({ contentType: "application/json" });
      const values = json.jsonProducer({ id: "p" });
      await Promise.all([[1, 2], "x", { a: null }].map((value) => values.write(value)));
      await refusal(values.write(undefined), "bad_request");
      const { next } = await values.append(false);
      await values.close();
      equal((await json.read()).json(), [[1, 2], "x", { a: null }, false], "values");
      equal(next, (await json.head()).tail, "token");
      await refusal(json.producer({ id: "q" }).append("1"), "unsupported");
    },
  },
  {
    name: "producer: a refusal ends it; what was queued behind is not sent",
    async run({ pico, name }) {
      const stream = pico.stream(name);
      const producer = stream.producer({ id: "p", batchRecordsMax: 1, queueRecordsMax: 2 });
      const calls = [producer.append("a"), producer.write("b"), producer.append("c"), producer.flush()];
      // The second had its place in the queue before the first was refused.
      const outcomes = await Promise.allSettled(calls);
      equal(
        outcomes.map(({ status }) => status),
        ["rejected", "fulfilled", "rejected", "rejected"],
        "outcomes",
      );
      await refusal(producer.close(), "not_found");
    },
  },
  {
    name: "producer: a signal ends it at once, with its reason",
    async run({ pico, name }) {
      const stream = pico.stream(name);
      await stream.create();
      const abort = new AbortController();
      const reason = new Error("enough");
      const producer = stream.producer({ id: "p", lingerMs: 20_000, signal: abort.signal });
      const outcome = producer.append("a").catch((error: unknown) => error);
      await Promise.resolve();
      abort.abort(reason);
      isTrue((await outcome) === reason, "pending");
      isTrue((await producer.write("b").catch((error: unknown) => error)) === reason, "later");
      equal((await stream.head()).tail, 0, "nothing was sent");
      const late = stream.producer({ id: "p", signal: abort.signal });
      isTrue((await late.append("b").catch((error: unknown) => error)) === reason, "aborted before");
    },
  },
  {
    name: "producer: wrong options are refused where it is made",
    async run({ pico, name }) {
      const wrong: ProducerOptions[] = [
        { id: "" },
        { id: "x".repeat(1025) },
        { id: "p", epoch: -1 },
        { id: "p", epoch: 2 ** 53 },
        { id: "p", firstSeq: 0.5 },
        { id: "p", lingerMs: Number.NaN },
        { id: "p", batchRecordsMax: 10_001 },
        { id: "p", batchBytesMax: 0 },
        { id: "p", queueBytesMax: 0 },
        { id: "p", queueRecordsMax: 0 },
      ];
      for (const options of wrong)
        await refusal(
          Promise.resolve().then(() => pico.stream(name).producer(options)),
          "bad_request",
        );
      // A text that no header holds.
      await pico.stream(name).create();
      await refusal(pico.stream(name).producer({ id: "\u{1f600}" }).append("a"), "bad_request");
    },
  },
];

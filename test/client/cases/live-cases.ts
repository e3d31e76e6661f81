/** Live reads of both protocols, by long poll and by event stream, on a server whose live answers last a second. */
import { equal, isTrue } from "../../pico/expect.ts";
import { all, type ClientCase, refusal, take } from "../client-suite.ts";

const MODES = ["long-poll", "sse"] as const;

function cases(live: (typeof MODES)[number]): readonly ClientCase[] {
  return [
    {
      name: `${live}, pico: what is there comes first, then what is appended, until the close`,
      async run({ pico, name }) {
        const stream = pico.stream(name);
        await stream.create();
        await stream.append(["0", "1", "2"]);
        const got: string[] = [];
        const reads = (async () => {
          for await (const page of stream.follow({ live, recordsMax: 2 })) {
            got.push(...page.records.map((record) => record.text()));
            // Each further one is sent only when the one before has come.
            if (page.isUpToDate && got.length < 8) await stream.append(String(got.length), { close: got.length === 7 });
          }
        })();
        await reads;
        equal(got, ["0", "1", "2", "3", "4", "5", "6", "7"], "records");
      },
    },
    {
      name: `${live}, pico: a quiet stream outlives many live answers, and an empty page comes once`,
      async run({ pico, name }) {
        const stream = pico.stream(name);
        await stream.create();
        const pages: number[] = [];
        const reads = (async () => {
          for await (const page of stream.follow({ live, from: "tail" })) pages.push(page.records.length);
        })();
        // Longer than two live answers of this server.
        await new Promise((resolve) => setTimeout(resolve, 2500));
        equal(pages, [0], "the tail is told once");
        await stream.append("a", { close: true });
        await reads;
        equal(pages, [0, 1], "data, then the end");
      },
    },
    {
      name: `${live}, pico: a close without data ends the iteration, a closed stream is read to its end`,
      async run({ pico, name }) {
        const stream = pico.stream(name);
        await stream.create({ body: "a" });
        const reads = all(stream.follow({ live }));
        await stream.close();
        const pages = await reads;
        equal([pages[0]?.records.length, pages.at(-1)?.isEnd], [1, true], "pages");
        equal((await all(stream.records({ live }))).length, 1, "again, closed");
      },
    },
    {
      name: `${live}, pico: a signal ends a waiting iteration with its reason`,
      async run({ pico, name }) {
        const stream = pico.stream(name);
        await stream.create();
        const abort = new AbortController();
        const reason = new Error("enough");
        let outcome: unknown = null;
        try {
          for await (const page of stream.follow({ live, signal: abort.signal })) {
            isTrue(page.isUpToDate, "at the tail");
            setTimeout(() => abort.abort(reason), 50);
          }
        } catch (error) {
          outcome = error;
        }
        isTrue(outcome === reason, "the reason");
        const late = await stream.read({ signal: AbortSignal.abort(reason) }).catch((error: unknown) => error);
        isTrue(late === reason, "aborted before");
      },
    },
    {
      name: `${live}, pico: a delete surfaces as not_found`,
      async run({ pico, name }) {
        const stream = pico.stream(name);
        await stream.create();
        const reads = refusal(all(stream.follow({ live })), "not_found");
        await take(stream.follow({ live }), 1);
        await stream.delete();
        await reads;
      },
    },
    {
      name: `${live}, pico: a stream that was made anew, and is shorter, surfaces as bad_request`,
      async run({ pico, name }) {
        const stream = pico.stream(name);
        await stream.create();
        await stream.append(["a", "b"]);
        const iterator = stream.follow({ live })[Symbol.asyncIterator]();
        equal((await iterator.next()).value?.next, 2, "position");
        await stream.delete();
        await stream.create();
        await refusal(iterator.next(), "bad_request");
      },
    },
    {
      name: `${live}, durable: bytes come as they were appended, until the close`,
      async run({ durable, name }) {
        const stream = durable.stream(name);
        await stream.create();
        const sent = Uint8Array.from({ length: 256 }, (_, value) => value);
        await stream.append(sent);
        const got: number[] = [];
        for await (const page of stream.follow({ live })) {
          got.push(...page.bytes);
          if (page.isUpToDate && got.length < 1024) await stream.append(sent, { close: got.length === 768 });
        }
        equal(got, [...sent, ...sent, ...sent, ...sent], "bytes");
      },
    },
    {
      name: `${live}, durable: JSON values come one by one, arrays as arrays, until the close`,
      async run({ durable, name }) {
        const stream = durable.stream(name, { contentType: "application/json" });
        await stream.create();
        const sent = [{ text: "a\r\nb\u{2028}" }, [1, [2]], null, "x", 1.5];
        const got: unknown[] = [];
        for await (const page of stream.follow({ live, from: "tail" })) {
          got.push(...page.json());
          if (page.isUpToDate && got.length < sent.length) await stream.appendJson([sent[got.length]], { close: got.length === 4 });
        }
        equal(got, sent, "values");
      },
    },
    {
      name: `${live}, durable: texts come whole; an event stream shows their line ends as LF`,
      async run({ durable, name }) {
        const stream = durable.stream(name, { contentType: "text/plain" });
        await stream.create();
        const text = "a\r\nb\rc\n\n  d: ü";
        const shown = live === "sse" ? text.replaceAll(/\r\n?/g, "\n") : text;
        let got = "";
        for await (const page of stream.follow({ live })) {
          got += page.text();
          if (page.isUpToDate && !page.isEnd) await stream.append(text, { close: true });
        }
        equal(got, shown, "text");
      },
    },
    {
      name: `${live}, durable: an iteration goes on at a token that was kept`,
      async run({ durable, name }) {
        const stream = durable.stream(name, { contentType: "application/json" });
        await stream.create();
        await stream.appendJson([1, 2]);
        const { next } = await stream.read();
        await stream.appendJson([3], { close: true });
        const pages = await all(stream.follow({ live, from: next }));
        equal(
          pages.flatMap((page) => page.json()),
          [3],
          "values",
        );
        isTrue((pages.at(-1)?.next ?? "") > next, "tokens rise");
      },
    },
  ];
}

export const liveCases: readonly ClientCase[] = [
  ...MODES.flatMap(cases),
  {
    name: "live: one page can be waited for, for as long as the server lets a read wait",
    async run({ pico, durable, name }) {
      const stream = pico.stream(name);
      await stream.create({ contentType: "text/plain" });
      const empty = await stream.read({ from: 0, wait: true });
      equal([empty.records.length, empty.next, empty.isUpToDate], [0, 0, true], "the server's time-out");
      const waiting = stream.read({ from: 0, wait: true });
      await stream.append("a");
      equal(
        (await waiting).records.map((record) => record.text()),
        ["a"],
        "what came",
      );
      await refusal(stream.read({ from: "tail", wait: true }), "bad_request");
      const other = durable.stream(name);
      const { next } = await other.read();
      const page = other.read({ from: next, wait: true });
      await stream.append("b");
      equal((await page).text(), "b", "over Durable Streams");
    },
  },
];

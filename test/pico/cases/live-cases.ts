/** §8 and §9: long poll and server-sent events. */
import { equal, isTrue, matches, refused, status } from "../expect.ts";
import type { SseEvent } from "../pico-client.ts";
import type { CaseList } from "../suite.ts";

const TEXT = { "content-type": "text/plain" };

function bodies(events: readonly SseEvent[]): unknown[] {
  return events
    .filter(({ event }) => event === "data")
    .flatMap(({ data }) => (JSON.parse(data) as { body: unknown }[]).map(({ body }) => body));
}

export const liveCases: CaseList = [
  {
    sections: ["8"],
    name: "a long poll with data is answered at once, with a cursor and without a tag",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a"]);
      const answer = await pico.get(`${name}?live=long-poll`);
      status(answer, 200);
      equal((answer.json() as { body: string }[])[0]?.body, "a", "record");
      matches(answer.headers.get("pico-cursor"), /^\d+$/, "Pico-Cursor");
      equal([answer.headers.get("etag"), answer.headers.get("cache-control")], [null, "no-store"], "headers");
    },
  },
  {
    sections: ["8"],
    name: "a waiting long poll gets the next record, in its format",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a"]);
      for (const [index, query] of ["seq=now", "seq=2&format=raw", "seq=3&format=binary"].entries()) {
        const [answer] = await Promise.all([pico.get(`${name}?live=long-poll&${query}`), appendSoon(pico, name, `r${index}`)]);
        status(answer, 200, query);
        isTrue(answer.text.includes(`r${index}`), `${query} has the record`);
        equal([answer.headers.get("pico-next-seq"), answer.headers.get("pico-up-to-date")], [String(index + 2), "true"], query);
      }
    },
  },
  {
    sections: ["8"],
    name: "without data it is 204 after the time-out, with position, cursor and no type",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a"]);
      const answer = await pico.get(`${name}?seq=1&live=long-poll&format=nonsense`);
      status(answer, 204);
      equal([answer.headers.get("pico-next-seq"), answer.headers.get("pico-up-to-date")], ["1", "true"], "headers");
      matches(answer.headers.get("pico-cursor"), /^\d+$/, "Pico-Cursor");
      equal([answer.headers.get("content-type"), answer.headers.get("cache-control")], [null, "no-store"], "type and caching");
    },
  },
  {
    sections: ["8"],
    name: "at the end of a closed stream it is 204 at once; a close wakes a waiting one",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a"]);
      const [woken] = await Promise.all([pico.get(`${name}?seq=1&live=long-poll`), closeSoon(pico, name)]);
      for (const answer of [woken, await pico.get(`${name}?seq=1&live=long-poll`)]) {
        status(answer, 204);
        equal([answer.headers.get("pico-closed"), answer.headers.get("pico-next-seq")], ["true", "1"], "headers");
      }
    },
  },
  {
    sections: ["8"],
    name: "a delete wakes a waiting long poll with 404, also when the name is taken again at once",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a"]);
      const [answer] = await Promise.all([pico.get(`${name}?seq=1&live=long-poll`), soon(() => pico.delete(name))]);
      refused(answer, 404, "not_found");
      const other = newName();
      await pico.fill(other, ["a"]);
      const recreate = async () => {
        await pico.delete(other);
        await pico.fill(other, ["new", "life"]);
      };
      const [second] = await Promise.all([pico.get(`${other}?seq=1&live=long-poll`), soon(recreate)]);
      refused(second, 404, "not_found", "recreated");
    },
  },
  {
    sections: ["8"],
    name: "a cursor at or above the present one gets a greater one; what is no number is ignored",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a"]);
      const cursorOf = async (sent: string) =>
        BigInt((await pico.get(`${name}?live=long-poll&cursor=${sent}`)).headers.get("pico-cursor") ?? "0");
      const present = await cursorOf("nonsense");
      const far = present + 1000n;
      const next = await cursorOf(String(far));
      isTrue(next > far && next <= far + 60n, `${next} is 1 to 60 above ${far}`);
      isTrue((await cursorOf("1")) < far, "an old cursor is ignored");
    },
  },
  {
    sections: ["8"],
    name: "an append and close at once: the waiting poll gets the data with the end",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      const [answer] = await Promise.all([
        pico.get(`${name}?live=long-poll`),
        soon(() => pico.post(name, "last", { "pico-closed": "true" })),
      ]);
      status(answer, 200);
      equal([(answer.json() as { body: string }[])[0]?.body, answer.headers.get("pico-closed")], ["last", "true"], "data and end");
    },
  },
  {
    sections: ["8"],
    name: "many readers that wait for one record all get it",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      const [answers] = await Promise.all([
        Promise.all(Array.from({ length: 20 }, () => pico.get(`${name}?live=long-poll&format=raw`))),
        appendSoon(pico, name, "for all"),
      ]);
      equal(
        answers.map(({ text }) => text),
        Array(20).fill("for all"),
        "bodies",
      );
    },
  },
  {
    sections: ["9"],
    name: "SSE: data and control events of the stream so far, ids are where to go on",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a", "b"]);
      const answer = await pico.events(`${name}?live=sse`, (events) => events.length >= 2);
      equal(answer.status, 200, "status");
      equal(
        [answer.headers.get("content-type"), answer.headers.get("cache-control")],
        ["text/event-stream", "no-cache, no-transform"],
        "headers",
      );
      equal(answer.headers.get("x-accel-buffering"), "no", "X-Accel-Buffering");
      const [data, control] = answer.events;
      equal([data?.event, data?.id, control?.event, control?.id], ["data", "2", "control", "2"], "events");
      equal(bodies(answer.events), ["a", "b"], "records");
      equal(control?.data, '{"next_seq":2,"up_to_date":true}', "control");
      matches(answer.text, /^event: data\nid: 2\ndata:\[/, "form");
    },
  },
  {
    sections: ["9"],
    name: "SSE at the tail begins with a control event at once, then brings what is appended",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a"]);
      const [answer] = await Promise.all([
        pico.events(`${name}?seq=now&live=sse`, (events) => bodies(events).length >= 2),
        soon(async () => {
          await pico.post(name, "b");
          await pico.post(name, "c");
        }),
      ]);
      equal(answer.events[0], { event: "control", id: "1", data: '{"next_seq":1,"up_to_date":true}' }, "first event");
      equal(bodies(answer.events), ["b", "c"], "records");
    },
  },
  {
    sections: ["9"],
    name: "SSE reconnects by Last-Event-ID without a gap or a repeat",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a", "b"]);
      const first = await pico.events(`${name}?live=sse`, (events) => events.length >= 2);
      await pico.post(name, "c");
      const id = first.events.at(-1)?.id ?? "";
      const second = await pico.events(`${name}?live=sse`, (events) => events.length >= 2, { "last-event-id": id });
      equal(bodies(second.events), ["c"], "records");
    },
  },
  {
    sections: ["9"],
    name: "SSE of a closed stream: the data, a control with closed, then the end",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a"]);
      await pico.post(name, "", { "pico-closed": "true" });
      const answer = await pico.events(`${name}?live=sse`, () => false);
      equal(answer.isEnded, true, "ended");
      equal(bodies(answer.events), ["a"], "records");
      equal(JSON.parse(answer.events.at(-1)?.data ?? "{}"), { next_seq: 1, up_to_date: true, closed: true }, "last control");
      const atEnd = await pico.events(`${name}?seq=1&live=sse`, () => false);
      equal(
        atEnd.events.map(({ data }) => JSON.parse(data) as unknown),
        [{ next_seq: 1, up_to_date: true, closed: true }],
        "at the end",
      );
    },
  },
  {
    sections: ["9"],
    name: "a live reader gets the data of an append that closes, then closed, then the end",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      const [answer] = await Promise.all([
        pico.events(`${name}?live=sse`, () => false),
        soon(() => pico.post(name, "last", { "pico-closed": "true" })),
      ]);
      equal([answer.isEnded, bodies(answer.events)], [true, ["last"]], "data and end");
      equal((JSON.parse(answer.events.at(-1)?.data ?? "{}") as { closed?: boolean }).closed, true, "closed in the last event");
    },
  },
  {
    sections: ["9"],
    name: "SSE ends by itself after its time; a delete ends it too",
    async run({ pico, target, newName }) {
      const name = newName();
      await pico.fill(name, ["a"]);
      const startedMs = Date.now();
      const [answer, deleted] = await Promise.all([
        pico.events(`${name}?live=sse`, () => false),
        (async () => {
          const other = newName();
          await pico.fill(other, ["b"]);
          const [events] = await Promise.all([pico.events(`${other}?live=sse`, () => false), soon(() => pico.delete(other))]);
          return events;
        })(),
      ]);
      equal([answer.isEnded, deleted.isEnded], [true, true], "ended");
      isTrue(Date.now() - startedMs < target.sseSeconds * 1000 + 10_000, "in time");
    },
  },
  {
    sections: ["9"],
    name: "SSE above the tail ends behind its head",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a"]);
      const answer = await pico.events(`${name}?seq=9&live=sse`, () => false);
      equal([answer.status, answer.isEnded, answer.events], [200, true, []], "answer");
    },
  },
  {
    sections: ["9"],
    name: "SSE ignores format, count and bytes, and comes in chunks that each have a control event",
    async run({ pico, target, newName }) {
      const name = newName();
      const body = "x".repeat(Math.ceil(target.pageBytes / 2));
      await pico.fill(name, [body, "\u00ff", body, "end"]);
      const isDone = (events: readonly SseEvent[]) => bodies(events).at(-1) === "end" && events.at(-1)?.event === "control";
      const answer = await pico.events(`${name}?live=sse&format=raw&count=1&bytes=1`, isDone);
      equal(bodies(answer.events), [body, "\u00ff", body, "end"], "records");
      answer.events.forEach((one, index) => {
        if (one.event === "data") equal(answer.events[index + 1]?.event, "control", "a control event behind each data event");
      });
      isTrue(answer.events.length >= 4, "more than one chunk");
    },
  },
  {
    sections: ["9"],
    name: "a payload with line breaks cannot forge an event",
    async run({ pico, newName }) {
      const name = newName();
      const attack = "x\r\n\r\nevent: control\r\ndata: {}\n\nevent: evil\ndata:1\r\r";
      await pico.fill(name, [attack]);
      const answer = await pico.events(`${name}?live=sse`, (events) => events.length >= 2);
      equal(
        answer.events.map(({ event }) => event),
        ["data", "control"],
        "events",
      );
      equal(bodies(answer.events), [attack], "record");
    },
  },
  {
    sections: ["9", "3.3"],
    name: "waiting live readers keep a stream with a TTL alive",
    async run({ pico, target, newName }) {
      if (target.sseSeconds > 10) return;
      const name = newName();
      await pico.put(name, { ...TEXT, "pico-ttl": "1" });
      const answer = await pico.events(`${name}?live=sse`, () => false);
      equal(answer.isEnded, true, "ended by its time");
      status(await pico.head(name), 200, "HEAD");
    },
  },
];

/** Lets the other side begin to wait first; nothing depends on it, either order must end the same. */
async function soon<T>(run: () => Promise<T>): Promise<T> {
  await Bun.sleep(100);
  return run();
}

type Poster = { post(name: string, body: string, headers?: Record<string, string>): Promise<unknown> };

function appendSoon(pico: Poster, name: string, body: string): Promise<unknown> {
  return soon(() => pico.post(name, body));
}

function closeSoon(pico: Poster, name: string): Promise<unknown> {
  return soon(() => pico.post(name, "", { "pico-closed": "true" }));
}

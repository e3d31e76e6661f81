/** §10: HEAD, DELETE, list. */
import { equal, isTrue, refused, status } from "../expect.ts";
import type { CaseList } from "../suite.ts";

interface List {
  readonly items: readonly Record<string, unknown>[];
  readonly next?: string;
}

export const streamCases: CaseList = [
  {
    sections: ["10"],
    name: "HEAD tells type, start, tail, lifetime and closed, each only when set",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, { "content-type": "text/plain", "pico-expires-at": "2100-01-01T00:00:00Z" });
      await pico.post(name, "a");
      const open = await pico.head(name);
      status(open, 200);
      const told = ["content-type", "pico-start-seq", "pico-next-seq", "pico-ttl", "pico-expires-at", "pico-closed", "cache-control"];
      equal(
        told.map((header) => open.headers.get(header)),
        ["text/plain", "0", "1", null, "2100-01-01T00:00:00Z", null, "no-store"],
        "open",
      );
      await pico.post(name, "", { "pico-closed": "true" });
      equal((await pico.head(name)).headers.get("pico-closed"), "true", "closed");
    },
  },
  {
    sections: ["10"],
    name: "DELETE is 204, then 404, both empty; the name is free at once and starts at 0",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["old"]);
      const deleted = await pico.delete(name);
      status(deleted, 204);
      equal(deleted.text, "", "body");
      const again = await pico.delete(name);
      status(again, 404);
      equal(again.text, "", "body of the second");
      status(await pico.put(name, { "content-type": "text/html" }), 201, "PUT");
      equal(await pico.records(name), [], "records");
      equal((await pico.post(name, "new")).headers.get("pico-start-seq"), "0", "Pico-Start-Seq");
    },
  },
  {
    sections: ["10"],
    name: "a list has names in byte order with what is set, and sequences of streams in use",
    async run({ pico, newName }) {
      const base = newName();
      await pico.fill(`${base}/b`, ["x"]);
      await pico.put(`${base}/a`, { "content-type": "text/plain", "pico-ttl": "60" });
      await pico.put(`${base}/B`, { "content-type": "text/plain", "pico-expires-at": "2100-01-01T00:00:00Z", "pico-closed": "true" });
      await pico.put(`${base}/\u{1F600}`.replace("\u{1F600}", "%F0%9F%98%80"), {});
      await pico.put(`${base}/%EF%BF%BD`, {});
      await pico.get(`${base}/a`); // From here on it is in use.
      const answer = await pico.get(`/?prefix=${encodeURIComponent(`${base}/`)}`);
      status(answer, 200);
      equal([answer.headers.get("content-type"), answer.headers.get("cache-control")], ["application/json", "no-store"], "headers");
      const { items, next } = answer.json() as List;
      equal(next, undefined, "next");
      equal(
        items.map(({ name }) => name),
        ["B", "a", "b", "\uFFFD", "\u{1F600}"].map((last) => `${base}/${last}`),
        "names in byte order",
      );
      equal(
        items[1],
        { name: `${base}/a`, content_type: "text/plain", partitions: 1, closed: false, ttl: 60, start_seq: 0, next_seq: 0 },
        "item with a TTL",
      );
      equal([items[0]?.closed, items[0]?.expires_at], [true, "2100-01-01T00:00:00Z"], "item that is closed and expires");
      equal(items[2]?.next_seq, 1, "next_seq");
    },
  },
  {
    sections: ["10"],
    name: "a list comes in pages by limit and cursor, each name once",
    async run({ pico, newName }) {
      const base = newName();
      const names = Array.from({ length: 7 }, (_, i) => `${base}/${i}`);
      for (const name of names) await pico.put(name);
      const found: unknown[] = [];
      let cursor = "";
      let pages = 0;
      do {
        const list = (await pico.get(`/?prefix=${encodeURIComponent(`${base}/`)}&limit=3&cursor=${cursor}`)).json() as List;
        isTrue(list.items.length <= 3, "at most 3 a page");
        found.push(...list.items.map(({ name }) => name));
        cursor = list.next ?? "";
        pages += 1;
      } while (cursor !== "" && pages < 10);
      equal(found, names, "names");
      equal(pages, 3, "pages");
    },
  },
  {
    sections: ["10"],
    name: "start_after is exclusive; limits are strict, 0 is the default, too much is cut",
    async run({ pico, newName }) {
      const base = newName();
      for (const last of ["a", "b", "c"]) await pico.put(`${base}/${last}`);
      const prefix = encodeURIComponent(`${base}/`);
      const after = (await pico.get(`/?prefix=${prefix}&start_after=${encodeURIComponent(`${base}/a`)}`)).json() as List;
      equal(
        after.items.map(({ name }) => name),
        [`${base}/b`, `${base}/c`],
        "behind a",
      );
      for (const limit of ["0", "", "18446744073709551615"]) {
        equal(((await pico.get(`/?prefix=${prefix}&limit=${limit}`)).json() as List).items.length, 3, `limit=${limit}`);
      }
      for (const wrong of ["limit=-1", "limit=x", "cursor=%21%21", "cursor=bm9uc2Vuc2U"])
        refused(await pico.get(`/?${wrong}`), 400, "bad_request", wrong);
    },
  },
  {
    sections: ["10"],
    name: "a prefix is plain text, not a path, and deleted streams are not listed",
    async run({ pico, newName }) {
      const base = newName();
      for (const last of ["-1", "-2"]) await pico.put(base + last);
      await pico.put(`${base}-3`);
      await pico.delete(`${base}-3`);
      const { items } = (await pico.get(`/?prefix=${encodeURIComponent(`${base}-`)}`)).json() as List;
      equal(
        items.map(({ name }) => name),
        [`${base}-1`, `${base}-2`],
        "names",
      );
    },
  },
];

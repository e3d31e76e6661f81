/** §7: pages, formats, entity tags; §12.2: binary pages. */
import { equal, isTrue, matches, refused, status } from "../expect.ts";
import type { CaseList } from "../suite.ts";

const JSON_BATCH = { "content-type": "application/vnd.picomq.batch+json" };

export const readCases: CaseList = [
  {
    sections: ["7"],
    name: "a page has its records, where to go on, and whether it reaches the tail",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a", "b", "c"]);
      const page = await pico.get(`${name}?seq=0&count=2`);
      equal([page.headers.get("pico-next-seq"), page.headers.get("pico-up-to-date")], ["2", null], "first page");
      equal(page.headers.get("content-type"), "application/json", "Content-Type");
      equal(page.headers.get("pico-start-seq"), null, "no Pico-Start-Seq");
      const rest = await pico.get(`${name}?seq=2&count=2`);
      equal([rest.headers.get("pico-next-seq"), rest.headers.get("pico-up-to-date")], ["3", "true"], "last page");
      equal(
        (rest.json() as { body: string }[]).map(({ body }) => body),
        ["c"],
        "records",
      );
    },
  },
  {
    sections: ["7"],
    name: "at the tail the page is empty in every format, above it 400",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a"]);
      for (const [format, body] of [
        ["json", "[]"],
        ["raw", ""],
        ["binary", "\u0001\0\0\0\0"],
      ] as const) {
        const page = await pico.get(`${name}?seq=1&format=${format}`);
        status(page, 200, format);
        equal(page.text, body, `${format} body`);
        equal([page.headers.get("pico-next-seq"), page.headers.get("pico-up-to-date")], ["1", "true"], `${format} headers`);
      }
      refused(await pico.get(`${name}?seq=2`), 400, "bad_request", "above the tail");
    },
  },
  {
    sections: ["7"],
    name: "now, in any letter case, is the tail",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a", "b"]);
      for (const now of ["now", "NOW", "Now"]) {
        const page = await pico.get(`${name}?seq=${now}`);
        equal([page.text, page.headers.get("pico-next-seq")], ["[]", "2"], now);
      }
    },
  },
  {
    sections: ["7"],
    name: "Last-Event-ID is the position without seq, and is ignored with it",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a", "b", "c"]);
      const read = async (query: string, id: string) => (await pico.get(name + query, { "last-event-id": id })).json() as unknown[];
      equal((await read("", "2")).length, 1, "without seq");
      equal((await read("?seq=1", "2")).length, 2, "with seq");
      equal((await read("", "")).length, 3, "empty");
      refused(await pico.get(name, { "last-event-id": "now" }), 400, "bad_request", "now");
    },
  },
  {
    sections: ["7"],
    name: "count and bytes bound a page, but at least one record comes",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["x".repeat(100), "y".repeat(100), "z".repeat(100)]);
      equal((await pico.records(`${name}?bytes=1`)).length, 1, "bytes=1");
      equal((await pico.records(`${name}?bytes=199`)).length, 1, "bytes=199");
      equal((await pico.records(`${name}?bytes=200`)).length, 2, "bytes=200");
      equal((await pico.records(`${name}?count=2&bytes=1000`)).length, 2, "count=2");
      equal((await pico.records(`${name}?count=0`)).length, 3, "count=0");
      equal((await pico.records(`${name}?count=18446744073709551615`)).length, 3, "the greatest count");
    },
  },
  {
    sections: ["7"],
    name: "keys and headers count against bytes",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name);
      const record = { key: "k".repeat(50), headers: [{ name: "n".repeat(25), value: "v".repeat(25) }], body: "b" };
      await pico.post(name, JSON.stringify({ records: [record, record] }), JSON_BATCH);
      equal((await pico.records(`${name}?bytes=201`)).length, 1, "one byte too few");
      equal((await pico.records(`${name}?bytes=202`)).length, 2, "just enough");
    },
  },
  {
    sections: ["7"],
    name: "without bytes a page is about the chunk size, with bytes=0 it reaches the tail, in every format",
    async run({ pico, target, newName }) {
      const name = newName();
      await pico.put(name, { "content-type": "text/plain" });
      const record = { body: "x".repeat(1000) };
      for (let i = 0; i < 12; i++) await pico.post(name, JSON.stringify({ records: Array(500).fill(record) }), JSON_BATCH);
      const page = await pico.get(name);
      const count = (page.json() as unknown[]).length;
      equal(count, Math.floor(target.pageBytes / 1000), "records of a default page");
      equal(page.headers.get("pico-next-seq"), String(count), "Pico-Next-Seq");
      const whole = await pico.get(`${name}?bytes=0`);
      equal([whole.headers.get("pico-next-seq"), whole.headers.get("pico-up-to-date")], ["6000", "true"], "whole headers");
      equal(whole.headers.get("cache-control"), "no-store", "whole Cache-Control");
      equal(
        (whole.json() as { seq: number }[]).map(({ seq }) => seq),
        Array.from({ length: 6000 }, (_, i) => i),
        "sequences",
      );
      equal((await pico.get(`${name}?bytes=0&format=raw`)).text, "x".repeat(6_000_000), "raw");
      const binary = await pico.get(`${name}?bytes=0&format=binary`);
      equal(Buffer.from(binary.bytes).readUInt32BE(1), 6000, "count of a binary batch");
      equal(binary.bytes.length, 5 + 6000 * (8 + 8 + 4 + 4 + 4 + 1000), "length of a binary batch");
      const some = await pico.get(`${name}?bytes=0&count=5000`);
      equal(
        [(some.json() as unknown[]).length, some.headers.get("pico-next-seq"), some.headers.get("pico-up-to-date")],
        [5000, "5000", null],
        "with count",
      );
    },
  },
  {
    sections: ["7"],
    name: "bytes beyond 4 MiB are cut to that",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name);
      const body = "x".repeat(512 * 1024);
      for (let i = 0; i < 12; i++) await pico.post(name, body);
      const page = await pico.get(`${name}?bytes=18446744073709551615&format=raw`);
      equal(page.bytes.length, 4 * 1024 * 1024, "bytes of the page");
    },
  },
  {
    sections: ["7"],
    name: "formats: json, binary, raw, empty for json; others are 400",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a", "b"], { "content-type": "text/x-mine; v=1" });
      const types = await Promise.all(
        ["json", "binary", "raw", ""].map(async (format) => (await pico.get(`${name}?format=${format}`)).headers.get("content-type")),
      );
      equal(types, ["application/json", "application/vnd.picomq.batch", "text/x-mine; v=1", "application/json"], "types");
      equal((await pico.get(`${name}?format=raw`)).text, "ab", "raw has no separator");
      for (const format of ["JSON", "xml"]) refused(await pico.get(`${name}?format=${format}`), 400, "bad_request", format);
    },
  },
  {
    sections: ["7"],
    name: "text that is not UTF-8 is base64 in JSON, also as key and header value",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name);
      const record = { key_b64: "/w==", headers: [{ name: "h", value_b64: "gA==" }], body_b64: "wyg=" };
      await pico.post(name, JSON.stringify({ records: [record, { body: "\uFEFFé\u0000" }] }), JSON_BATCH);
      const records = await pico.records(name);
      equal({ ...records[0], seq: 0, timestamp: 0 }, { ...record, seq: 0, timestamp: 0 }, "bytes");
      equal(records[1]?.body, "\uFEFFé\u0000", "text");
    },
  },
  {
    sections: ["7", "12.2"],
    name: "a binary page has sequence and timestamp before each record",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name);
      const answer = await pico.post(name, "hi");
      const timestamp = BigInt(answer.headers.get("pico-timestamp") ?? "0")
        .toString(16)
        .padStart(16, "0");
      const page = await pico.get(`${name}?format=binary`);
      equal(page.bytes.toHex(), `01000000010000000000000000${timestamp}ffffffff00000000000000026869`, "bytes");
      equal(page.bytes.length, 35, "length, as in §12.4");
    },
  },
  {
    sections: ["12.2"],
    name: "null and empty bodies, keys and header values differ in a binary page",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name);
      const records = [
        { body: null },
        {
          key: "",
          headers: [
            { name: "", value: null },
            { name: "", value: "" },
          ],
          body: "",
        },
      ];
      await pico.post(name, JSON.stringify({ records }), JSON_BATCH);
      const hex = (await pico.get(`${name}?format=binary`)).bytes.toHex();
      isTrue(hex.slice(10 + 32).startsWith("ffffffff00000000ffffffff"), "the null record");
      isTrue(hex.endsWith("00000000" + "00000002" + "00000000ffffffff" + "0000000000000000" + "00000000"), "the empty record");
    },
  },
  {
    sections: ["7"],
    name: "a tag answers 304 with the page's headers, and another page has another tag",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a", "b"]);
      const page = await pico.get(`${name}?count=1`);
      const etag = page.headers.get("etag") ?? "";
      matches(etag, /^"[A-Za-z0-9+/=]+:00000000000000000000:00000000000000000001"$/, "ETag");
      const same = await pico.get(`${name}?count=1`, { "if-none-match": etag });
      status(same, 304);
      equal(same.text, "", "body");
      equal([same.headers.get("pico-next-seq"), same.headers.get("etag"), same.headers.get("content-type")], ["1", etag, null], "headers");
      for (const other of [`W/${etag}`, `${etag}, "x"`, "*"])
        status(await pico.get(`${name}?count=1`, { "if-none-match": other }), 200, other);
      status(await pico.get(`${name}?count=1&format=raw`, { "if-none-match": etag }), 200, "another format");
      status(await pico.get(name, { "if-none-match": etag }), 200, "another range");
    },
  },
  {
    sections: ["7", "3.3"],
    name: "a recreated name never matches a tag of its former life",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["old"]);
      const etag = (await pico.get(name)).headers.get("etag") ?? "";
      await pico.delete(name);
      await pico.fill(name, ["new"]);
      const page = await pico.get(name, { "if-none-match": etag });
      status(page, 200);
      equal((page.json() as { body: string }[])[0]?.body, "new", "body");
    },
  },
  {
    sections: ["7"],
    name: "Pico-Closed is on pages that reach the end of a closed stream, and an empty one has :c in its tag",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a", "b"]);
      const open = await pico.get(`${name}?seq=2`);
      await pico.post(name, "", { "pico-closed": "true" });
      equal((await pico.get(`${name}?count=1`)).headers.get("pico-closed"), null, "below the tail");
      equal((await pico.get(name)).headers.get("pico-closed"), "true", "with the last record");
      const end = await pico.get(`${name}?seq=2`, { "if-none-match": open.headers.get("etag") ?? "" });
      status(end, 200, "the end after the close");
      equal(end.headers.get("pico-closed"), "true", "at the end");
      matches(end.headers.get("etag"), /:c"$/, "ETag");
    },
  },
  {
    sections: ["7", "6"],
    name: "below the trim point is 410 offset_gone with the start, for every read",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a", "b", "c"]);
      await pico.post(name, "", { "pico-trim-seq": "2" });
      for (const query of ["", "?seq=1", "?seq=1&live=long-poll", "?seq=0&bytes=0"]) {
        const answer = await pico.get(name + query);
        refused(answer, 410, "offset_gone", query);
        equal(answer.headers.get("pico-start-seq"), "2", "Pico-Start-Seq");
        matches((answer.json() as { message: string }).message, /2.*3/, "the valid range");
      }
      equal(
        (await pico.records(`${name}?seq=2`)).map(({ body }) => body),
        ["c"],
        "from the start on",
      );
    },
  },
  {
    sections: ["7"],
    name: "live with another value, empty included, is 400",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a"]);
      for (const live of ["", "true", "SSE", "longpoll"]) refused(await pico.get(`${name}?live=${live}`), 400, "bad_request", live);
    },
  },
  {
    sections: ["7"],
    name: "a record larger than a page comes whole",
    async run({ pico, target, newName }) {
      const name = newName();
      const body = "x".repeat(Math.min(target.requestBytesMax, 1024 * 1024));
      await pico.fill(name, [body, "small"]);
      const page = await pico.get(`${name}?format=raw`);
      equal([page.text.length, page.headers.get("pico-next-seq")], [body.length, "1"], "page");
    },
  },
];

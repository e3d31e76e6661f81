/** §2: errors and limits of the HTTP edge; §14: ownership. */
import { equal, isTrue, matches, refused, status } from "../expect.ts";
import type { CaseList } from "../suite.ts";

const TEXT = { "content-type": "text/plain" };

export const edgeCases: CaseList = [
  {
    sections: ["2"],
    name: "errors are JSON with code and message; a tail in the body is in Pico-Next-Seq too",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["a"]);
      const answer = await pico.post(name, "b", { "pico-match-seq": "0" });
      refused(answer, 412, "match_failed");
      equal((answer.json() as { next_seq: number }).next_seq, 1, "next_seq");
      equal(answer.headers.get("pico-next-seq"), "1", "Pico-Next-Seq");
    },
  },
  {
    sections: ["2"],
    name: "a missing stream is 404 with body on GET and POST, without on HEAD, DELETE and SSE",
    async run({ pico, newName }) {
      const name = newName();
      refused(await pico.get(name), 404, "not_found", "GET");
      refused(await pico.post(name, "x"), 404, "not_found", "POST");
      refused(await pico.post(name, "", { "pico-trim-seq": "1" }), 404, "not_found", "trim");
      refused(await pico.post(name, "", { "pico-closed": "true" }), 404, "not_found", "close");
      refused(await pico.get(`${name}?live=long-poll`), 404, "not_found", "long poll");
      for (const answer of [await pico.head(name), await pico.delete(name), await pico.get(`${name}?live=sse`)]) {
        status(answer, 404);
        equal(answer.text, "", "body");
      }
    },
  },
  {
    sections: ["2"],
    name: "a body over the limit is 413 before it is read, and names the limit",
    async run({ pico, target, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      const head = `POST ${name} HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${target.requestBytesMax + 1}\r\n\r\n`;
      const answer = await pico.raw(head, /\}/);
      matches(answer, /^HTTP\/1\.1 413 /, "status line");
      matches(answer, new RegExp(`"error":"internal".*${target.requestBytesMax}`), "body");
      equal((await pico.head(name)).headers.get("pico-next-seq"), "0", "tail");
    },
  },
  {
    sections: ["2"],
    name: "a chunked body is counted: the limit passes, one byte more is 413",
    async run({ pico, target, newName }) {
      if (target.requestBytesMax > 8 * 1024 * 1024) return;
      const name = newName();
      await pico.put(name, TEXT);
      const send = (size: number) => {
        const body = "x".repeat(size);
        return pico.raw(
          `POST ${name} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n${size.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
          /\r\n\r\n/,
          10_000,
        );
      };
      matches(await send(target.requestBytesMax), /^HTTP\/1\.1 200 /, "at the limit");
      matches(await send(target.requestBytesMax + 1), /^HTTP\/1\.1 413 /, "beyond it");
      equal((await pico.head(name)).headers.get("pico-next-seq"), "1", "tail");
    },
  },
  {
    sections: ["2", "4.1"],
    name: "what arrived of an upload that was cut is never appended",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      const cutAfter = (text: string) => pico.raw(text, null, 300);
      await cutAfter(`POST ${name} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\nonly part of it`);
      await cutAfter(`POST ${name} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n`);
      await pico.post(name, "whole");
      equal(
        (await pico.records(name)).map(({ body }) => body),
        ["whole"],
        "records",
      );
    },
  },
  {
    sections: ["2"],
    name: "a compressed body is refused by name, as bodies are stored as sent",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      const answer = await pico.post(name, new Uint8Array(Bun.gzipSync("x")), { "content-encoding": "gzip" });
      refused(answer, 400, "bad_request");
      matches(answer.text, /Content-Encoding/i, "message");
    },
  },
  {
    sections: ["2"],
    name: "a body with announced trailers is refused and not appended",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      const head = `POST ${name} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nTrailer: x\r\n\r\n`;
      const answer = await pico.raw(`${head}1\r\na\r\n0\r\nx: y\r\n\r\n`);
      matches(answer, /^HTTP\/1.1 400 .*"bad_request".*Trailer/s, "answer");
      equal((await pico.head(name)).headers.get("pico-next-seq"), "0", "tail");
    },
  },
  {
    sections: ["2"],
    name: "requests on one connection, each behind the answer before, are appended in order",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      for (const body of ["a", "b", "c"]) status(await pico.post(name, body), 200, body);
      equal(
        (await pico.records(name)).map(({ body }) => body),
        ["a", "b", "c"],
        "records",
      );
    },
  },
  {
    sections: ["2"],
    name: "pipelined requests are answered in order, or the connection ends: none is answered that was not taken",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      const one = (body: string) => `POST ${name} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\n\r\n${body}`;
      const text = await pico.raw(one("a") + one("b") + one("c"), /(pico-start-seq.*){3}/is, 1000);
      const answered = [...text.matchAll(/pico-start-seq: (\d+)/gi)].map((match) => Number(match[1]));
      const taken = (await pico.records(name)).map(({ body }) => body);
      equal(answered, [0, 1, 2].slice(0, answered.length), "sequences that were answered");
      equal(taken, ["a", "b", "c"].slice(0, taken.length), "records");
      isTrue(taken.length >= answered.length, "what was answered is there");
    },
  },
  {
    sections: ["2"],
    name: "features that are not there are refused by name, values that change nothing are accepted",
    async run({ pico, newName }) {
      const name = newName();
      for (const [header, value] of [
        ["Pico-Schema", "s"],
        ["Pico-Kafka-Topic", "t"],
        ["Pico-Partitions", "4"],
      ] as const) {
        const answer = await pico.put(name, { ...TEXT, [header]: value });
        refused(answer, 400, "bad_request", header);
        matches(answer.text, new RegExp(header, "i"), "message");
      }
      status(await pico.put(name, { ...TEXT, "pico-partitions": "1", "pico-schema-validate": "false" }), 201, "Pico-Partitions: 1");
      status(await pico.get(`${name}?partition=0`), 200, "partition=0");
      refused(await pico.get(`${name}?partition=1`), 400, "bad_request", "partition=1");
    },
  },
  {
    sections: ["14"],
    name: "what the answering node owns, and unknown names, are served without a redirect",
    async run({ pico, newName }) {
      const name = newName();
      status(await pico.put(name, TEXT), 201, "PUT");
      for (const method of ["GET", "HEAD", "POST", "DELETE"]) {
        const answer = await pico.request(method, name, {}, method === "POST" ? "x" : undefined);
        isTrue(answer.status < 300, `${method} gave ${answer.status}`);
        equal(answer.headers.get("location"), null, "Location");
      }
      status(await pico.get(newName()), 404, "unknown name");
    },
  },
  {
    sections: ["14", "10"],
    name: "the list is answered by any node",
    async run({ pico }) {
      status(await pico.get("/"), 200);
    },
  },
];

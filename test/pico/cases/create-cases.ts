/** §3: create, settings, lifetime. */
import { equal, isTrue, refused, status } from "../expect.ts";
import type { CaseList } from "../suite.ts";

const TEXT = { "content-type": "text/plain" };

export const createCases: CaseList = [
  {
    sections: ["3.2"],
    name: "a create is 201 with Location, type and sequence; a repeat is 200 without Location",
    async run({ pico, newName }) {
      const name = newName();
      const type = "text/plain; charset=utf-8";
      const created = await pico.put(name, { "content-type": type });
      status(created, 201);
      equal(created.headers.get("location"), name, "Location");
      equal(created.headers.get("content-type"), type, "Content-Type");
      equal(created.headers.get("pico-next-seq"), "0", "Pico-Next-Seq");
      equal(created.headers.get("pico-closed"), null, "Pico-Closed");
      equal(created.text, "", "body");
      const again = await pico.put(name, { "content-type": "TEXT/plain" });
      status(again, 200);
      equal(again.headers.get("location"), null, "Location of the repeat");
      equal(again.headers.get("content-type"), type, "the stored type");
    },
  },
  {
    sections: ["3.1"],
    name: "without a content type, or with an empty one, the stream is application/octet-stream",
    async run({ pico, newName }) {
      const name = newName();
      equal((await pico.rawRequest("PUT", name)).status, 201, "PUT");
      equal((await pico.head(name)).headers.get("content-type"), "application/octet-stream", "type");
      const other = newName();
      equal((await pico.rawRequest("PUT", other, { "content-type": "" })).status, 201, "PUT with an empty type");
      equal((await pico.head(other)).headers.get("content-type"), "application/octet-stream", "type");
    },
  },
  {
    sections: ["3.2"],
    name: "other settings are 409: type, TTL, expiry, closed flag",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, { ...TEXT, "pico-ttl": "100" });
      status(await pico.put(name, { ...TEXT, "pico-ttl": "100" }), 200, "equal settings");
      for (const headers of [
        { "content-type": "application/json", "pico-ttl": "100" },
        { ...TEXT, "pico-ttl": "101" },
        TEXT,
        { ...TEXT, "pico-expires-at": "2100-01-01T00:00:00Z" },
        { ...TEXT, "pico-ttl": "100", "pico-closed": "true" },
      ]) {
        refused(await pico.put(name, headers), 409, "conflict", JSON.stringify(headers));
      }
    },
  },
  {
    sections: ["3.2", "6"],
    name: "the closed flag is compared as it is now",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      await pico.post(name, "", { "pico-closed": "true" });
      refused(await pico.put(name, TEXT), 409, "conflict", "open, asked of a closed stream");
      const answer = await pico.put(name, { ...TEXT, "pico-closed": "true" });
      status(answer, 200);
      equal(answer.headers.get("pico-closed"), "true", "Pico-Closed");
    },
  },
  {
    sections: ["3.1"],
    name: "TTL and expiry exclude each other",
    async run({ pico, newName }) {
      const answer = await pico.put(newName(), { "pico-ttl": "5", "pico-expires-at": "2100-01-01T00:00:00Z" });
      refused(answer, 400, "bad_request");
    },
  },
  {
    sections: ["3.1"],
    name: "a stream can be created closed",
    async run({ pico, newName }) {
      const name = newName();
      const answer = await pico.put(name, { ...TEXT, "pico-closed": "true" });
      status(answer, 201);
      equal(answer.headers.get("pico-closed"), "true", "Pico-Closed");
      refused(await pico.post(name, "x"), 409, "closed");
    },
  },
  {
    sections: ["3.1"],
    name: "a body on PUT is the first record, and is ignored where the stream exists",
    async run({ pico, newName }) {
      const name = newName();
      const answer = await pico.put(name, TEXT, "first");
      status(answer, 201);
      equal(answer.headers.get("pico-next-seq"), "1", "Pico-Next-Seq");
      const again = await pico.put(name, TEXT, "ignored");
      status(again, 200);
      equal(again.headers.get("pico-next-seq"), "1", "Pico-Next-Seq of the repeat");
      equal(
        (await pico.records(name)).map(({ body }) => body),
        ["first"],
        "records",
      );
    },
  },
  {
    sections: ["3.1", "4.2"],
    name: "a batch body on PUT makes several records; a wrong one creates nothing",
    async run({ pico, newName }) {
      const name = newName();
      const batch = { "content-type": "application/vnd.picomq.batch+json" };
      refused(await pico.put(name, batch, '{"records":[]}'), 400, "bad_request");
      status(await pico.head(name), 404, "HEAD after the refusal");
      const answer = await pico.put(name, { ...batch, "pico-closed": "true" }, '{"records":[{"body":"a"},{"body":"b"}]}');
      status(answer, 201);
      equal(answer.headers.get("pico-next-seq"), "2", "Pico-Next-Seq");
      equal(answer.headers.get("pico-closed"), "true", "Pico-Closed");
    },
  },
  {
    sections: ["3.2"],
    name: "of racing equal creates one is 201 and the others are 200, and whoever hears of it finds the stream",
    async run({ pico, newName }) {
      const name = newName();
      const statuses = await Promise.all(
        Array.from({ length: 16 }, async () => {
          const created = await pico.put(name, TEXT);
          isTrue((await pico.post(name, "x")).status === 200, "an append right after it");
          return created.status;
        }),
      );
      equal(
        statuses.toSorted((left, right) => right - left),
        [201, ...Array(15).fill(200)],
        "statuses",
      );
    },
  },
  {
    sections: ["3.3"],
    name: "a stream is gone on every verb after its TTL, and its name starts anew at 0",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, { ...TEXT, "pico-ttl": "1" }, "old");
      await waitFor(async () => (await pico.head(name)).status === 404);
      status(await pico.get(name), 404, "GET");
      status(await pico.post(name, "x"), 404, "POST");
      status(await pico.delete(name), 404, "DELETE");
      status(await pico.get(`${name}?live=sse`), 404, "SSE");
      equal(((await pico.get(`/?prefix=${encodeURIComponent(name)}`)).json() as { items: unknown[] }).items, [], "list");
      const created = await pico.put(name, TEXT);
      status(created, 201, "PUT");
      equal(created.headers.get("pico-next-seq"), "0", "Pico-Next-Seq");
      equal(await pico.records(name), [], "records");
    },
  },
  {
    sections: ["3.3"],
    name: "reads and appends renew a TTL, HEAD does not",
    async run({ pico, newName }) {
      const [read, appended, headed] = [newName(), newName(), newName()];
      for (const name of [read, appended, headed]) await pico.put(name, { ...TEXT, "pico-ttl": "2" });
      const startedMs = Date.now();
      while (Date.now() - startedMs < 3000) {
        status(await pico.get(read), 200, "GET");
        status(await pico.post(appended, "x"), 200, "POST");
        await pico.head(headed);
        await Bun.sleep(200);
      }
      await waitFor(async () => (await pico.head(headed)).status === 404);
    },
  },
  {
    sections: ["3.3"],
    name: "a past expiry and a TTL of 0 are accepted, and the stream is gone at the next access",
    async run({ pico, newName }) {
      for (const lifetime of [{ "pico-expires-at": "2001-01-01T00:00:00Z" }, { "pico-ttl": "0" }]) {
        const name = newName();
        status(await pico.put(name, lifetime), 201, `PUT with ${JSON.stringify(lifetime)}`);
        status(await pico.head(name), 404, "HEAD");
        status(await pico.get(name), 404, "GET");
        status(await pico.put(name, TEXT), 201, "PUT anew");
      }
    },
  },
  {
    sections: ["3.1"],
    name: "a content type is at most 1,024 characters",
    async run({ pico, newName }) {
      refused(await pico.put(newName(), { "content-type": `text/${"x".repeat(1020)}` }), 400, "bad_request");
    },
  },
];

/** Asks until it is so; the case fails after 10 s. */
async function waitFor(isSo: () => Promise<boolean>): Promise<void> {
  const startedMs = Date.now();
  while (!(await isSo())) {
    if (Date.now() - startedMs > 10_000) throw new Error("not so after 10 s");
    await Bun.sleep(50);
  }
}

/** §15: the worked exchanges of the contract, one after the other on one stream. */
import { equal, refused, status } from "../expect.ts";
import type { CaseList } from "../suite.ts";

export const workedCases: CaseList = [
  {
    sections: ["15"],
    name: "the exchanges give the answers that are written beside them",
    async run({ pico, newName }) {
      const name = newName();
      const type = "text/plain; charset=utf-8";
      const created = await pico.put(name, { "content-type": type });
      status(created, 201, "create");
      equal(
        [created.headers.get("location"), created.headers.get("content-type"), created.headers.get("pico-next-seq")],
        [name, type, "0"],
        "create",
      );
      status(await pico.put(name, { "content-type": "TEXT/plain" }), 200, "the same type");
      refused(await pico.put(name, { "content-type": "application/json" }), 409, "conflict", "another type");

      const producer = (epoch: string, seq: string) => ({
        "pico-producer-id": "p",
        "pico-producer-epoch": epoch,
        "pico-producer-seq": seq,
      });
      const first = await pico.post(name, "hi", producer("3", "0"));
      const told = ["pico-start-seq", "pico-next-seq", "pico-producer-epoch", "pico-producer-seq"];
      equal(
        told.map((header) => first.headers.get(header)),
        ["0", "1", "3", "0"],
        "append",
      );
      const again = await pico.post(name, "hi", producer("3", "0"));
      equal(
        told.map((header) => again.headers.get(header)),
        [null, "1", "3", "0"],
        "the same again",
      );
      const gap = await pico.post(name, "hi", producer("3", "4"));
      refused(gap, 409, "sequence_gap");
      equal([gap.headers.get("pico-expected-seq"), gap.headers.get("pico-received-seq")], ["1", "4"], "gap");
      const stale = await pico.post(name, "hi", producer("2", "9"));
      refused(stale, 403, "fenced");
      equal(stale.headers.get("pico-producer-epoch"), "3", "recorded epoch");
      const mismatch = await pico.post(name, "x", { "pico-match-seq": "0" });
      refused(mismatch, 412, "match_failed");
      equal([(mismatch.json() as { next_seq: number }).next_seq, mismatch.headers.get("pico-next-seq")], [1, "1"], "match");

      const page = await pico.get(name);
      const timestamp = Number(first.headers.get("pico-timestamp"));
      equal(page.json(), [{ seq: 0, timestamp, body: "hi" }], "page");
      equal(page.headers.get("pico-up-to-date"), "true", "up to date");
      refused(await pico.get(`${name}?seq=2`), 400, "bad_request", "above the tail");
      const closed = await pico.post(name, "", { "pico-closed": "true" });
      equal([closed.status, closed.headers.get("pico-next-seq"), closed.headers.get("pico-closed")], [200, "1", "true"], "close");
      const late = await pico.post(name, "y");
      refused(late, 409, "closed");
      equal([late.headers.get("pico-closed"), (late.json() as { next_seq: number }).next_seq], ["true", 1], "append to the closed stream");
    },
  },
  {
    sections: ["15", "8"],
    name: "the worked long poll: 204 after the wait, a cursor above the one sent",
    async run({ pico, newName }) {
      const name = newName();
      await pico.fill(name, ["hi"]);
      const sent = 990_000_000;
      const answer = await pico.get(`${name}?seq=1&live=long-poll&cursor=${sent}`);
      status(answer, 204);
      equal([answer.headers.get("pico-next-seq"), answer.headers.get("pico-up-to-date")], ["1", "true"], "headers");
      const cursor = Number(answer.headers.get("pico-cursor"));
      equal(cursor > sent && cursor <= sent + 60, true, "cursor");
    },
  },
];

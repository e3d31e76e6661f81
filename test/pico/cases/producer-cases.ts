/** §5: idempotent producers. */

import { equal, refused, status } from "../expect.ts";
import type { Answer, PicoClient } from "../pico-client.ts";
import type { CaseList } from "../suite.ts";

const TEXT = { "content-type": "text/plain" };

function append(
  pico: PicoClient,
  name: string,
  epoch: string,
  seq: string,
  body = "x",
  more: Record<string, string> = {},
): Promise<Answer> {
  const headers = { "pico-producer-id": "p", "pico-producer-epoch": epoch, "pico-producer-seq": seq, ...more };
  return pico.post(name, body, headers);
}

export const producerCases: CaseList = [
  {
    sections: ["5"],
    name: "sequences of an epoch are taken in order and echoed",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      for (const seq of ["0", "1", "2"]) {
        const answer = await append(pico, name, "3", seq);
        status(answer, 200);
        equal([answer.headers.get("pico-producer-epoch"), answer.headers.get("pico-producer-seq")], ["3", seq], "echo");
        equal(answer.headers.get("pico-start-seq"), seq, "Pico-Start-Seq");
      }
    },
  },
  {
    sections: ["5"],
    name: "a duplicate is 200, writes nothing and tells the last accepted sequence",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      for (const seq of ["0", "1", "2"]) await append(pico, name, "0", seq);
      const answer = await append(pico, name, "0", "0", "another body");
      status(answer, 200);
      equal(answer.headers.get("pico-producer-seq"), "2", "Pico-Producer-Seq");
      equal(answer.headers.get("pico-next-seq"), "3", "Pico-Next-Seq");
      equal([answer.headers.get("pico-start-seq"), answer.headers.get("pico-timestamp")], [null, null], "nothing written");
      equal((await pico.records(name)).length, 3, "records");
    },
  },
  {
    sections: ["5"],
    name: "an unknown producer begins at 0, in any epoch; other beginnings are 400",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      refused(await append(pico, name, "0", "1"), 400, "bad_request");
      status(await append(pico, name, "77", "0"), 200, "epoch 77");
    },
  },
  {
    sections: ["5"],
    name: "a newer epoch begins at 0 and fences the older one",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      await append(pico, name, "1", "0");
      refused(await append(pico, name, "2", "1"), 400, "bad_request", "a new epoch that does not begin at 0");
      status(await append(pico, name, "2", "0"), 200, "the new epoch");
      const answer = await append(pico, name, "1", "1");
      refused(answer, 403, "fenced");
      equal(answer.headers.get("pico-producer-epoch"), "2", "Pico-Producer-Epoch");
    },
  },
  {
    sections: ["5"],
    name: "a gap is 409 with the expected and the received sequence",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      await append(pico, name, "0", "0");
      const answer = await append(pico, name, "0", "4");
      refused(answer, 409, "sequence_gap");
      equal([answer.headers.get("pico-expected-seq"), answer.headers.get("pico-received-seq")], ["1", "4"], "sequences");
    },
  },
  {
    sections: ["5", "1.4"],
    name: "producer headers come all three, none empty, numbers strict",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      const all = { "pico-producer-id": "p", "pico-producer-epoch": "0", "pico-producer-seq": "0" };
      for (const wrong of [
        { "pico-producer-id": "p" },
        { "pico-producer-epoch": "0", "pico-producer-seq": "0" },
        { "pico-producer-id": "p", "pico-producer-seq": "0" },
        { ...all, "pico-producer-epoch": "-1" },
        { ...all, "pico-producer-seq": "1.5" },
        { ...all, "pico-producer-seq": "00" },
        { ...all, "pico-producer-epoch": "18446744073709551616" },
      ]) {
        refused(await pico.post(name, "x", wrong), 400, "bad_request", JSON.stringify(wrong));
      }
      for (const empty of Object.keys(all)) {
        const answer = await pico.rawRequest("POST", name, { ...all, [empty]: "" }, "x");
        equal(answer.status, 400, `empty ${empty}`);
      }
      equal((await pico.head(name)).headers.get("pico-next-seq"), "0", "tail");
    },
  },
  {
    sections: ["5", "1.4"],
    name: "epochs are exact up to 2^64-1",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      status(await append(pico, name, "9007199254740992", "0"), 200, "2^53");
      status(await append(pico, name, "9007199254740993", "0"), 200, "2^53+1 is newer");
      const answer = await append(pico, name, "9007199254740992", "1");
      refused(answer, 403, "fenced");
      equal(answer.headers.get("pico-producer-epoch"), "9007199254740993", "Pico-Producer-Epoch");
      status(await append(pico, name, "18446744073709551615", "0"), 200, "2^64-1");
    },
  },
  {
    sections: ["5"],
    name: "one sequence is one request, whatever its number of records",
    async run({ pico, newName }) {
      const name = newName();
      const batch = { "content-type": "application/vnd.picomq.batch+json" };
      await pico.put(name, TEXT);
      await append(pico, name, "0", "0", '{"records":[{"body":"a"},{"body":"b"},{"body":"c"}]}', batch);
      equal((await append(pico, name, "0", "1")).headers.get("pico-start-seq"), "3", "Pico-Start-Seq");
    },
  },
  {
    sections: ["5", "6"],
    name: "a close-only request takes a sequence, and its repeat is a duplicate",
    async run({ pico, newName }) {
      const name = newName();
      const close = { "pico-closed": "true" };
      await pico.put(name, TEXT);
      await append(pico, name, "0", "0");
      for (const what of ["close", "repeat"]) {
        const answer = await append(pico, name, "0", "1", "", close);
        status(answer, 200, what);
        equal([answer.headers.get("pico-producer-seq"), answer.headers.get("pico-closed")], ["1", "true"], what);
      }
    },
  },
  {
    sections: ["6", "5"],
    name: "closed by a producer: another producer's close is 409, a close without producer is 200",
    async run({ pico, newName }) {
      const name = newName();
      const close = { "pico-closed": "true" };
      await pico.put(name, TEXT);
      await append(pico, name, "0", "0", "last", close);
      refused(await append(pico, name, "0", "0", "", { ...close, "pico-producer-id": "q" }), 409, "closed", "another producer");
      refused(await append(pico, name, "0", "1", "", close), 409, "closed", "a later sequence");
      status(await append(pico, name, "0", "0", "last", close), 200, "the same request again");
      status(await pico.post(name, "", close), 200, "without a producer");
    },
  },
  {
    sections: ["6", "5"],
    name: "closed without a producer: a producer's close-only is 200",
    async run({ pico, newName }) {
      const name = newName();
      const close = { "pico-closed": "true" };
      await pico.put(name, TEXT);
      await pico.post(name, "", close);
      status(await append(pico, name, "0", "0", "", close), 200);
      refused(await append(pico, name, "0", "0", "data", close), 409, "closed", "with a body");
    },
  },
  {
    sections: ["5"],
    name: "many copies of one request at once are written once",
    async run({ pico, newName }) {
      const name = newName();
      await pico.put(name, TEXT);
      const answers = await Promise.all(Array.from({ length: 10 }, () => append(pico, name, "0", "0", "once")));
      equal(
        answers.map((answer) => answer.status),
        Array(10).fill(200),
        "statuses",
      );
      equal(answers.filter((answer) => answer.headers.has("pico-start-seq")).length, 1, "written");
      equal((await pico.records(name)).length, 1, "records");
    },
  },
];

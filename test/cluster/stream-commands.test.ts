/** The verbs of the command line as a user runs them: outputs, exit codes, and servers that are killed meanwhile. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type CommandEnd, PicoCommand } from "./pico-command.ts";
import { program, TestNode } from "./test-node.ts";

const TEST_MS = 120_000;
const NO_OFFSET = "0".repeat(20);
const offset = (value: number) => String(value).padStart(20, "0");

let shared: TestNode;
beforeAll(async () => {
  shared = await TestNode.create();
  await shared.start("--long-poll-timeout-sec", "1");
}, TEST_MS);
afterAll(() => shared[Symbol.asyncDispose]());

const pico = (node = shared) => ({ PICO_ENDPOINT: `http://127.0.0.1:${node.ports.pico}` });
const ds = (node = shared) => ({ PICO_ENDPOINT: `http://127.0.0.1:${node.ports.durableStreams}`, PICO_PROTOCOL: "ds" });

function end(exitCode: number, output: string, errors: string): CommandEnd {
  return { exitCode, output, errors };
}

test(
  "over the Pico protocol each verb prints what the contract says, and ends with its exit code",
  async () => {
    const run = (words: string, input = "") => PicoCommand.run(words.split(" "), input, pico());
    expect(await run("create /v/a --content-type text/plain")).toEqual(end(0, "", "created=true\n"));
    expect(await run("create v/a --content-type text/plain")).toEqual(end(0, "", "created=false\n"));
    expect(await run("create /v/a")).toMatchObject({
      exitCode: 1,
      errors: expect.stringMatching(/^pico: conflict \(409\): .+ \[next=0\]\n$/),
    });
    expect(await run("head /v/a")).toEqual(end(0, "start=0 next=0 closed=false type=text/plain\n", ""));
    expect(await run("head /v/none")).toEqual(end(1, "", "not found\n"));
    expect(await run("append /v/a", "a\nb\r\n\nlast")).toEqual(
      end(0, "", [0, 1, 2, 3].map((seq) => `start=${seq} next=${seq + 1}\n`).join("")),
    );
    expect(await run("append /v/none")).toEqual(end(0, "", ""));
    expect(await run("append /v/none", "a\n")).toEqual(
      end(1, "", "pico: not_found (404): there is no stream /v/none; pico create makes one; no line is durable\n"),
    );
    expect(await run("read /v/a")).toEqual(end(0, "0\ta\n1\tb\n2\t\n3\tlast\n", ""));
    expect(await run("read /v/a --from 3")).toEqual(end(0, "3\tlast\n", ""));
    expect(await run("read /v/a --from 4")).toEqual(end(0, "", ""));
    expect(await run("read /v/a --from 5")).toMatchObject({
      exitCode: 1,
      errors: expect.stringMatching(/^pico: bad_request \(400\): .+ \[next=4\]\n$/),
    });
    expect(await run("tail /v/none")).toMatchObject({ exitCode: 1, errors: expect.stringContaining("pico: not_found (404)") });
    expect(await run("ls --prefix /v/")).toEqual(end(0, "/v/a start=0 next=4 closed=false\n", ""));
    expect(await run("trim /v/a --seq 2")).toEqual(end(0, "", "trimmed start=2\n"));
    expect(await run("read /v/a --from 0")).toMatchObject({ exitCode: 1, errors: expect.stringContaining("pico: offset_gone (410): ") });
    expect(await run("read /v/a")).toEqual(end(0, "2\t\n3\tlast\n", ""));
    expect(await run("close /v/a")).toEqual(end(0, "", "closed next=4\n"));
    expect(await run("append /v/a", "no\n")).toMatchObject({
      exitCode: 1,
      errors: expect.stringMatching(/^pico: closed \(409\): .+ \[next=4\]; no line is durable\n$/),
    });
    expect(await run("tail -f /v/a")).toEqual(end(0, "", ""));
    expect(await run("delete /v/a")).toEqual(end(0, "", "deleted=true\n"));
    expect(await run("delete /v/a")).toEqual(end(0, "", "deleted=false\n"));
  },
  TEST_MS,
);

test(
  "over Durable Streams likewise, and what the protocol lacks is refused by name",
  async () => {
    const run = (words: string, input = "") => PicoCommand.run(words.split(" "), input, ds());
    expect(await run("create /w/a --content-type text/plain")).toEqual(end(0, "", "created=true\n"));
    expect(await run("head /w/a")).toEqual(end(0, `start=-1 next=${NO_OFFSET} closed=false type=text/plain\n`, ""));
    expect(await run("append /w/a", "a\nb\n")).toEqual(end(0, "", `start=- next=${offset(1)}\nstart=- next=${offset(2)}\n`));
    expect(await run("append /w/a --content-type text/html", "c\n")).toMatchObject({
      exitCode: 1,
      errors: expect.stringContaining("pico: conflict (409): "),
    });
    expect(await run("read /w/a")).toEqual(end(0, `${offset(2)}\tab\n`, ""));
    expect(await run(`read /w/a --from ${offset(1)}`)).toEqual(end(0, `${offset(2)}\tb\n`, ""));
    expect(await run("append /w/a", "c\n\nd\n")).toMatchObject({
      exitCode: 1,
      errors: expect.stringMatching(
        /next=0+3\npico: line 2 is empty: .+; 1 line is durable; to go on behind: tail -n \+2 FILE \| pico append \/w\/a\n$/,
      ),
    });
    expect(await run("ls")).toMatchObject({ exitCode: 1, errors: expect.stringContaining("no stream listing") });
    expect(await run("append /w/a --batch 2", "x\n")).toMatchObject({
      exitCode: 1,
      errors: expect.stringContaining("one message per request"),
    });
    expect(await run("trim /w/a --seq 1")).toMatchObject({ exitCode: 1, errors: expect.stringContaining("unsupported: ") });
    expect(await run("read /w/none")).toMatchObject({ exitCode: 1, errors: expect.stringContaining("pico: not_found (404): ") });
    expect(await run("close /w/a")).toEqual(end(0, "", `closed next=${offset(3)}\n`));
    expect(await run("tail /w/a")).toEqual(end(0, "", ""));
    expect(await run("delete /w/a")).toEqual(end(0, "", "deleted=true\n"));
    // A JSON stream takes a line as the body of a request: the elements of an array are records.
    await run("create /w/json --content-type application/json");
    expect(await run("append /w/json", '{"a":1}\n[1,2]\n')).toMatchObject({ exitCode: 0 });
    expect(await run("read /w/json")).toEqual(end(0, `${offset(3)}\t[{"a":1},1,2]\n`, ""));
  },
  TEST_MS,
);

test(
  "flags stand before the command or behind it, and win over the environment",
  async () => {
    const [url] = Object.values(pico());
    const nowhere = { PICO_ENDPOINT: "http://127.0.0.1:1", PICO_PROTOCOL: "ds" };
    await PicoCommand.run(["create", "/flags"], "", pico());
    for (const words of [
      ["--endpoint", url ?? "", "--protocol=pico", "head", "/flags"],
      ["head", "/flags", `--endpoint=${url}/`, "--protocol", "pico"],
    ]) {
      expect(await PicoCommand.run(words, "", nowhere)).toMatchObject({
        exitCode: 0,
        output: "start=0 next=0 closed=false type=application/octet-stream\n",
      });
    }
    const refused = await PicoCommand.run(["head", "/flags"], "", nowhere);
    expect(refused).toMatchObject({
      exitCode: 1,
      errors: expect.stringMatching(/^pico: transport: .+connection refused; start a server .+\n$/),
    });
  },
  TEST_MS,
);

test(
  "records that are no text are shown by their size; input that is none is refused behind what is durable",
  async () => {
    await PicoCommand.run(["create", "/bytes"], "", pico());
    await shared.send({
      method: "POST",
      path: "/bytes",
      headers: { "content-type": "application/octet-stream" },
      body: Buffer.from([1, 0xff, 2]),
    });
    expect(await PicoCommand.run(["read", "/bytes"], "", pico())).toEqual(end(0, "0\t<3 bytes>\n", ""));
    const input = Buffer.concat([Buffer.from("fine\n"), Buffer.from([0xc3, 0x28, 0x0a]), Buffer.from("never\n")]);
    const refused = await PicoCommand.run(["append", "/bytes"], input, pico());
    expect(refused).toMatchObject({
      exitCode: 1,
      errors: expect.stringMatching(/^start=1 next=2\npico: line 2 is not UTF-8; 1 line is durable; /),
    });
  },
  TEST_MS,
);

test(
  "a lone line is appended at once, also with a large batch, while the input stays open",
  async () => {
    await PicoCommand.run(["create", "/lone"], "", pico());
    const command = new PicoCommand(["append", "/lone", "--batch", "1000"], pico());
    for (let seq = 0; seq < 3; seq++) {
      command.write(`line ${seq}\n`);
      await command.said(({ errors }) => errors.endsWith(`start=${seq} next=${seq + 1}\n`));
    }
    command.child.stdin?.end();
    expect((await command.ended).exitCode).toBe(0);
  },
  TEST_MS,
);

test(
  "an interrupted append makes durable what it read, says how much that is, and ends with 130",
  async () => {
    await PicoCommand.run(["create", "/interrupted"], "", pico());
    const command = new PicoCommand(["append", "/interrupted"], pico());
    command.write("a\nb\nunfinished");
    await command.said(({ errors }) => errors.endsWith("next=2\n"));
    command.child.kill("SIGINT");
    const ended = await command.ended;
    expect(ended).toMatchObject({
      exitCode: 130,
      errors: expect.stringMatching(/pico: interrupted; 2 lines are durable; to go on behind: tail -n \+3 FILE/),
    });
    expect(await PicoCommand.run(["read", "/interrupted"], "", pico())).toEqual(end(0, "0\ta\n1\tb\n", ""));
  },
  TEST_MS,
);

test(
  "an append that waits for input ends when the stream is closed by another",
  async () => {
    await PicoCommand.run(["create", "/ended"], "", pico());
    const command = new PicoCommand(["append", "/ended"], pico());
    command.write("a\n");
    await command.said(({ errors }) => errors.endsWith("next=1\n"));
    await PicoCommand.run(["close", "/ended"], "", pico());
    command.write("b\n");
    expect(await command.ended).toMatchObject({
      exitCode: 1,
      errors: expect.stringMatching(/pico: closed \(409\): .+; 1 line is durable\n$/),
    });
  },
  TEST_MS,
);

test(
  "a reader of the output that leaves ends the command quietly; an output that cannot be written does not",
  async () => {
    await PicoCommand.run(["create", "/long"], "", pico());
    await PicoCommand.run(
      ["append", "/long", "--batch", "10000"],
      Array.from({ length: 200_000 }, (_, index) => `line ${index}\n`).join(""),
      pico(),
    );
    const shell = (script: string) =>
      Bun.spawn(["bash", "-c", script], { env: { ...pico(), PATH: process.env.PATH ?? "" }, stdio: ["ignore", "pipe", "pipe"] });
    const command = program.join(" ");
    const first = shell(`${command} read /long | head -1; echo "\${PIPESTATUS[0]}"`);
    expect([await first.stdout.text(), await first.stderr.text()]).toEqual(["0\tline 0\n0\n", ""]);
    const full = shell(`${command} read /long > /dev/full; echo $?`);
    expect([await full.stdout.text(), await full.stderr.text()]).toEqual([
      "1\n",
      expect.stringMatching(/^pico: the output cannot be written: .*ENOSPC.*\n$/),
    ]);
  },
  TEST_MS,
);

test(
  "a file as input is read as it is, and a long read comes whole, in order",
  async () => {
    await PicoCommand.run(["create", "/file"], "", pico());
    const path = join(shared.folder, "lines");
    writeFileSync(path, Array.from({ length: 50_000 }, (_, index) => `line ${index} ${"x".repeat(index % 200)}\n`).join(""));
    const input = openSync(path, "r");
    const child = Bun.spawn([...program, "append", "/file", "--batch", "10000"], { env: pico(), stdio: [input, "ignore", "pipe"] });
    const errors = await child.stderr.text();
    closeSync(input);
    expect(errors).toEndWith(" next=50000\n");
    const { output } = await PicoCommand.run(["read", "/file"], "", pico());
    expect(output.replace(/^\d+\t/gm, "")).toBe(readFileSync(path, "utf8"));
  },
  TEST_MS,
);

test(
  "a read of a stream that is made anew while its output waits fails, and prints nothing of the new one",
  async () => {
    for (const [variables, name] of [
      [pico(), "/anew/pico"],
      [ds(), "/anew/ds"],
    ] as const) {
      const run = (words: string, input = "") => PicoCommand.run(words.split(" "), input, variables);
      const fill = async (letter: string) => {
        await run(`create ${name}`);
        await run(`append ${name}`, `${letter.repeat(4_000_000)}\n`.repeat(3));
      };
      await fill("a");
      const read = new PicoCommand(["read", name], variables);
      await read.said(({ output }) => output !== "");
      read.child.stdout?.pause();
      await run(`delete ${name}`);
      await fill("b");
      read.child.stdout?.resume();
      const { exitCode, errors, output } = await read.ended;
      expect([exitCode, errors]).toEqual([1, expect.stringContaining("pico: gone: ")]);
      expect(output).not.toContain("b");
    }
  },
  TEST_MS,
);

test(
  "tail without -f gives the first records that come, or ends with the server's wait; with -f it goes on to the end",
  async () => {
    for (const [name, variables] of [
      ["/tail/pico", pico()],
      ["/tail/ds", ds()],
    ] as const) {
      await PicoCommand.run(["create", name, "--content-type", "text/plain"], "", variables);
      expect(await PicoCommand.run(["tail", name], "", variables)).toEqual(end(0, "", ""));
      const following = new PicoCommand(["tail", "-f", name], variables);
      // It begins behind the last record, so it must have looked before there is one.
      while (following.output === "") await PicoCommand.run(["append", name], "again\n", variables);
      await PicoCommand.run(["append", name], "last\n", variables);
      await PicoCommand.run(["close", name], "", variables);
      const { exitCode, output, errors } = await following.ended;
      expect([exitCode, errors]).toEqual([0, ""]);
      expect(output).toEndWith("last\n");
    }
  },
  TEST_MS,
);

test(
  "append, read and tail -f go on over kills of the server: each line once and in order, told on stderr",
  async () => {
    await using node = await TestNode.create();
    await node.start("--long-poll-timeout-sec", "2");
    for (const [name, variables] of [
      ["/s/pico", pico(node)],
      ["/s/ds", ds(node)],
    ] as const) {
      await PicoCommand.run(["create", name, "--content-type", "text/plain"], "", variables);
      const following = new PicoCommand(["tail", "-f", name], variables);
      const appending = new PicoCommand(["append", name], variables);
      appending.write("0;\n");
      await appending.said(({ errors }) => errors.includes("next="));
      // The follower may begin behind the first lines; from its first one on it must have all.
      let count = 1;
      while (following.output === "") {
        appending.write(`${count++};\n`);
        await Bun.sleep(5);
      }
      for (let round = 0; round < 2; round++) {
        const dead = node.process.kill();
        for (const last = count + 500; count < last; count++) appending.write(`${count};\n`);
        await dead;
        await node.start("--long-poll-timeout-sec", "2");
      }
      appending.child.stdin?.end();
      expect((await appending.ended).exitCode).toBe(0);
      await PicoCommand.run(["close", name], "", variables);
      const { output } = await PicoCommand.run(["read", name], "", variables);
      const numbers = numbersOf(output);
      expect(numbers).toEqual(Array.from({ length: count }, (_, index) => index));
      const followed = await following.ended;
      expect(followed.exitCode).toBe(0);
      const seen = numbersOf(followed.output);
      expect(seen).toEqual(numbers.slice(numbers.indexOf(seen[0] ?? -1)));
    }
  },
  TEST_MS,
);

/** The numbers in what was appended as `7;`, whatever lines they came in. */
function numbersOf(output: string): number[] {
  return [...output.replace(/^\d+\t/gm, "").matchAll(/(\d+);/g)].map(([, number]) => Number(number));
}

test(
  "a long read goes on over a kill of the server, at the record behind the last one that it gave",
  async () => {
    await using node = await TestNode.create();
    await node.start();
    await PicoCommand.run(["create", "/big"], "", pico(node));
    const count = 60_000;
    await PicoCommand.run(
      ["append", "/big", "--batch", "10000"],
      Array.from({ length: count }, (_, index) => `${index};${"x".repeat(200)}\n`).join(""),
      pico(node),
    );
    const reading = new PicoCommand(["read", "/big"], pico(node));
    // Nothing is taken from its output beyond the first piece, so it stands in the middle while the server dies.
    await reading.said(({ output }) => output !== "");
    reading.child.stdout?.pause();
    await node.process.kill();
    const starting = node.start();
    reading.child.stdout?.resume();
    await starting;
    const { exitCode, output } = await reading.ended;
    expect(exitCode).toBe(0);
    expect(numbersOf(output)).toEqual(Array.from({ length: count }, (_, index) => index));
  },
  TEST_MS,
);

test(
  "a server that stays away ends the command after the time that it was given, with what is durable and how to go on",
  async () => {
    await using node = await TestNode.create();
    await node.start();
    await PicoCommand.run(["create", "/away"], "", pico(node));
    const appending = new PicoCommand(["append", "/away", "--retry-sec", "4"], pico(node));
    const following = new PicoCommand(["tail", "-f", "/away"], { ...pico(node), PICO_RETRY_SEC: "4" });
    const impatient = new PicoCommand(["append", "/away", "--retry-sec", "0"], pico(node));
    appending.write("a\n");
    await appending.said(({ errors }) => errors === "start=0 next=1\n");
    impatient.write("b\n");
    await impatient.said(({ errors }) => errors === "start=1 next=2\n");
    // So that it has begun to follow.
    while (following.output === "") {
      impatient.write("c\n");
      await Bun.sleep(5);
    }
    await node.process.kill();
    appending.write("d\n");
    impatient.write("d\n");
    expect(await appending.ended).toMatchObject({
      exitCode: 1,
      errors: expect.stringMatching(
        /^start=0 next=1\npico: transport: .+; trying again for up to 4 s\npico: transport: .+ attempts\).*; 1 line is durable.*; to go on behind: tail -n \+2 FILE \| pico append \/away\n$/,
      ),
    });
    expect(await following.ended).toMatchObject({
      exitCode: 1,
      errors: expect.stringMatching(/trying again for up to 4 s\npico: transport: /),
    });
    const gaveUp = await impatient.ended;
    expect(gaveUp.exitCode).toBe(1);
    expect(gaveUp.errors).not.toContain("trying again");
    expect(await PicoCommand.run(["tail", "-f", "/away"], "", pico(node))).toMatchObject({
      exitCode: 1,
      errors: expect.not.stringContaining("trying again"),
    });
  },
  TEST_MS,
);

test(
  "many appends to one stream, at once and one behind the other, use few producer ids and lose nothing",
  async () => {
    await PicoCommand.run(["create", "/many"], "", pico());
    const ends = await Promise.all(
      Array.from({ length: 12 }, (_, index) => PicoCommand.run(["append", "/many"], `${index};\n`.repeat(20), pico())),
    );
    expect(ends.map(({ exitCode }) => exitCode)).toEqual(ends.map(() => 0));
    const { output } = await PicoCommand.run(["read", "/many"], "", pico());
    const counts = new Map<number, number>();
    for (const number of numbersOf(output)) counts.set(number, (counts.get(number) ?? 0) + 1);
    expect([...counts.values()]).toEqual(Array.from({ length: 12 }, () => 20));
  },
  TEST_MS,
);

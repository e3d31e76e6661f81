import { expect, test } from "bun:test";
import { AppendAcks } from "../../src/cli/append-acks.ts";
import { AppendRun, AppendStopped } from "../../src/cli/append-run.ts";
import type { DataInput } from "../../src/cli/program-process.ts";
import type { LineProducer } from "../../src/cli/stream-client.ts";
import { StreamError } from "../../src/client/stream-error.ts";
import { utf8Encoder } from "../../src/lib/bytes.ts";
import { CLI_LINE_BYTES_MAX } from "../../src/lib/limits.ts";
import { FakeProcess } from "./fake-process.ts";

/** Input that comes when the test says so. */
class GivenInput implements DataInput {
  readonly isTerminal = false;
  readonly sizeBytes = null;
  readonly #pieces: Uint8Array[] = [];
  #isEnded = false;
  #failure: Error | null = null;
  #wake = () => {};
  reads = 0;

  give(...texts: (string | Uint8Array)[]): this {
    for (const text of texts) this.#pieces.push(typeof text === "string" ? utf8Encoder.encode(text) : text);
    this.#wake();
    return this;
  }

  end(): this {
    this.#isEnded = true;
    this.#wake();
    return this;
  }

  break(error: Error): void {
    this.#failure = error;
    this.#wake();
  }

  async read(buffer: Uint8Array): Promise<number> {
    this.reads += 1;
    while (this.#pieces.length === 0 && !this.#isEnded && this.#failure === null) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#pieces.length === 0 && this.#failure !== null) throw this.#failure;
    const piece = this.#pieces.shift() ?? new Uint8Array(0);
    buffer.set(piece);
    return piece.length;
  }
}

/** A producer whose records become durable, or fail, when the test says so. */
class GivenProducer implements LineProducer {
  readonly lines: string[] = [];
  hasRoom = true;
  failure: StreamError | null = null;
  readonly #acks: AppendAcks;
  #settled = 0;
  #flushers: { resolve: () => void; reject: (reason: unknown) => void }[] = [];

  constructor(acks: AppendAcks) {
    this.#acks = acks;
  }

  async write(line: Uint8Array): Promise<void> {
    if (this.failure !== null) throw this.failure;
    this.lines.push(Buffer.from(line).toString());
    if (!this.hasRoom) await new Promise(() => {});
  }

  settle(): void {
    const count = this.lines.length - this.#settled;
    if (count > 0) this.#acks.wasTaken({ count, start: this.#settled, next: String(this.lines.length) });
    this.#settled = this.lines.length;
    for (const { resolve } of this.#flushers.splice(0)) resolve();
  }

  fail(error: StreamError): void {
    this.failure = error;
    for (const { reject } of this.#flushers.splice(0)) reject(error);
  }

  flush(): Promise<void> {
    return new Promise((resolve, reject) => this.#flushers.push({ resolve, reject }));
  }

  async close(): Promise<void> {
    if (this.failure !== null) throw this.failure;
    this.settle();
  }
}

function start(emptyLineRefusal: string | null = null) {
  const self = new FakeProcess();
  const acks = new AppendAcks(self, 1000);
  const input = new GivenInput();
  const producer = new GivenProducer(acks);
  let opened = 0;
  const run = new AppendRun({
    input,
    name: "/s",
    emptyLineRefusal,
    acks,
    open: async () => {
      opened += 1;
      return producer;
    },
  });
  return { input, producer, run, acks, openedCount: () => opened };
}

test("an interrupt while a silent server is looked for ends the run at once", async () => {
  const acks = new AppendAcks(new FakeProcess(), 1);
  const opening = Promise.withResolvers<void>();
  const open = () => {
    opening.resolve();
    return new Promise<LineProducer>(() => {});
  };
  const run = new AppendRun({ input: new GivenInput().give("a\n"), name: "/s", emptyLineRefusal: null, acks, open });
  const running = run.run();
  await opening.promise;
  run.interrupt();
  const { isInterrupted, message } = await stopped(running);
  expect([isInterrupted, message]).toEqual([true, "interrupted; no line is durable"]);
});

const turn = () => new Promise((resolve) => setImmediate(resolve));

async function stopped(running: Promise<void>): Promise<AppendStopped> {
  const error = await running.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof AppendStopped)) throw new Error(`it did not stop as expected: ${error}`);
  return error;
}

test("what came before an input that breaks becomes durable", async () => {
  const { run, input, producer, acks } = start();
  const running = run.run();
  input.give("a\nb\n");
  await turn();
  input.break(new Error("the input cannot be read: EIO"));
  const { message, isInterrupted } = await stopped(running);
  expect([producer.lines, acks.count, isInterrupted]).toEqual([["a", "b"], 2, false]);
  expect(message).toStartWith("the input cannot be read: EIO; 2 lines are durable; to go on behind");
});

test("an empty input asks no server", async () => {
  const { run, input, openedCount } = start();
  input.end();
  await run.run();
  expect(openedCount()).toBe(0);
});

test("lines are handed over as they come, and no more is read while there is no room", async () => {
  const { run, input, producer } = start();
  const running = run.run();
  input.give("a\nb");
  await turn();
  expect(producer.lines).toEqual(["a"]);
  producer.hasRoom = false;
  input.give("\nc\n", "d\n");
  await turn();
  // `b` waits for room, and with it everything behind.
  expect([producer.lines, input.reads]).toEqual([["a", "b"], 2]);
  void running;
});

test("a line that cannot be a record ends the run behind the lines before it", async () => {
  const cases: [(string | Uint8Array)[], string | null, string][] = [
    [
      ["a\nb\n", new Uint8Array([0x63, 0xff, 0x0a]), "d\n"],
      null,
      "line 3 is not UTF-8; 2 lines are durable; to go on behind: tail -n +3 FILE | pico append /s",
    ],
    [["a\n\nb\n"], "no empty ones", "line 2 is empty: no empty ones; 1 line is durable; to go on behind: tail -n +2 FILE | pico append /s"],
    [[new Uint8Array([0xff])], null, "line 1 is not UTF-8; no line is durable"],
  ];
  for (const [pieces, emptyLineRefusal, message] of cases) {
    const { run, input } = start(emptyLineRefusal);
    input.give(...pieces).end();
    expect((await stopped(run.run())).message).toBe(message);
  }
});

test("a line longer than a record is refused without being held", async () => {
  const { run, input } = start();
  input.give("a\n");
  const piece = new Uint8Array(256 * 1024).fill(0x78);
  input.give(...Array.from({ length: CLI_LINE_BYTES_MAX / piece.length + 1 }, () => piece));
  expect((await stopped(run.run())).message).toMatch(
    /^line 2 is a line of more than 33554432 bytes, the largest record; 1 line is durable/,
  );
});

test("a producer that fails while the input is silent ends the run; whether lines are lost is told from how it failed", async () => {
  const closed = new StreamError("closed", "it is closed", { status: 409, wireCode: "closed", facts: { tail: 9 } });
  const lost = new StreamError("transport", "no answer", { isOutcomeUnknown: true, facts: { attempts: 3 } });
  for (const [error, message] of [
    [closed, "closed (409): it is closed [next=9]; 1 line is durable"],
    [
      new StreamError("sequence_gap", "expected 0", { status: 409 }),
      "sequence_gap (409): expected 0; 1 line went with the stream, which was deleted meanwhile, or deleted and made anew",
    ],
    [
      new StreamError("unavailable", "later", { status: 503 }),
      "unavailable (503): later; 1 line is durable; to go on behind: tail -n +2 FILE | pico append /s",
    ],
    [
      lost,
      "transport: no answer (3 attempts); 1 line is durable, and some behind may be: pico read /s --from 1 shows them; to go on behind: tail -n +2 FILE | pico append /s",
    ],
  ] as const) {
    const { run, input, producer } = start();
    const ended = stopped(run.run());
    input.give("a\n");
    await turn();
    producer.settle();
    input.give("b\n");
    await turn();
    producer.fail(error);
    const stop = await ended;
    expect([stop.message, stop.isInterrupted]).toEqual([message, false]);
  }
});

test("an interrupt ends the reading, and what was read becomes durable", async () => {
  const { run, input, producer } = start();
  const ended = stopped(run.run());
  input.give("a\nb\nunfinished");
  await turn();
  run.interrupt();
  const { message, isInterrupted } = await ended;
  expect([message, isInterrupted]).toEqual(["interrupted; 2 lines are durable; to go on behind: tail -n +3 FILE | pico append /s", true]);
  expect(producer.lines).toEqual(["a", "b"]);
});

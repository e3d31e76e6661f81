import { expect, test } from "bun:test";
import type { Environment } from "../../src/cli/flag-values.ts";
import { runProgram } from "../../src/cli/program.ts";
import { OutputClosed, type ProgramProcess } from "../../src/cli/program-process.ts";
import { utf8Decoder } from "../../src/lib/bytes.ts";
import type { Timer } from "../../src/lib/clock.ts";
import { PicoError } from "../../src/lib/errors.ts";
import type { RunningNode, StartNode } from "../../src/node/node.ts";
import type { Settings } from "../../src/node/settings.ts";
import { SeededRandom } from "../support/seeded-random.ts";

/** Resolves behind everything that is ready to run. */
const turnOfTheLoop = () => new Promise((resolve) => setImmediate(resolve));
const never = new Promise<never>(() => {});
const addresses = { pico: "127.0.0.1:4437", durableStreams: "127.0.0.1:4438", admin: "127.0.0.1:9090" };

function nodeThat(parts: Partial<RunningNode> = {}): RunningNode {
  return { addresses, stop: async () => {}, stopped: never, ...parts };
}

/** A process whose signals, clock and streams are in the test's hands. */
class FakeProcess implements ProgramProcess {
  readonly printed: string[] = [];
  errorText = "";
  readonly exits: number[] = [];
  readonly started: Settings[] = [];
  monotonicNowMs = 0;
  readonly timers: { readonly dueMs: number; readonly run: () => void; isCancelled: boolean }[] = [];
  #listener: (signal: string) => void = () => {};
  readonly workingDirectory = "/home/me";
  readonly isErrorsTerminal = false;
  readonly isOutputTerminal = false;
  readonly random = new SeededRandom(1);
  readonly input = { isTerminal: false, sizeBytes: 0, read: async () => 0 };
  readonly errors = { write: (text: string) => this.addError(text) };
  readonly output = { write: async (bytes: Uint8Array) => void this.printed.push(utf8Decoder.decode(bytes)) };
  readonly startNode: StartNode;
  readonly environment: Environment;

  constructor(start: StartNode, environment: Environment = {}) {
    this.environment = environment;
    this.startNode = (settings, log, stopping) => {
      this.started.push(settings);
      return start(settings, log, stopping);
    };
  }

  readonly clock = {
    nowMs: () => 0,
    monotonicMs: () => this.monotonicNowMs,
    schedule: (delayMs: number, run: () => void): Timer => {
      const timer = { dueMs: this.monotonicNowMs + delayMs, run, isCancelled: false };
      this.timers.push(timer);
      return {
        cancel() {
          timer.isCancelled = true;
        },
      };
    },
    soon: (run: () => void) => this.clock.schedule(0, run),
  };

  addError(text: string): void {
    this.errorText += text;
  }

  print(line: string): void {
    this.printed.push(line);
  }
  onStopSignal(listener: (signal: string) => void): void {
    this.#listener = listener;
  }
  exitAtOnce(exitCode: number): void {
    this.exits.push(exitCode);
  }
  signal(name: string): void {
    this.#listener(name);
  }
}

test("a node that is up says where it listens, and a signal stops it with exit code 0", async () => {
  const reasons: string[] = [];
  const self = new FakeProcess(async () => nodeThat({ stop: async (reason) => void reasons.push(reason) }));
  const ended = runProgram(["serve"], self);
  await turnOfTheLoop();
  expect(self.printed).toEqual([
    "serving on http://127.0.0.1:4437 (advertised http://127.0.0.1:4437)",
    "durable streams on http://127.0.0.1:4438 (advertised http://127.0.0.1:4438)",
    "admin on http://127.0.0.1:9090",
  ]);
  self.signal("SIGTERM");
  expect(await ended).toBe(0);
  expect(self.printed.at(-1)).toBe("shutting down");
  expect(reasons).toEqual(["SIGTERM"]);
  expect(self.errorText).toBe("");
});

test("advertised addresses are printed as given, and absent listeners not at all", async () => {
  const self = new FakeProcess(async () => nodeThat({ addresses: { pico: null, durableStreams: "127.0.0.1:4437", admin: null } }));
  const ended = runProgram(["--protocol", "ds", "serve", "--http-address=https://ds.example.com", "--no-admin"], self);
  await turnOfTheLoop();
  expect(self.printed).toEqual(["serving on http://127.0.0.1:4437 (advertised https://ds.example.com)"]);
  self.signal("SIGINT");
  expect(await ended).toBe(0);
});

test("copies of a signal change nothing, a second one ends the process at once", async () => {
  const self = new FakeProcess(async () => nodeThat({ stop: () => never }));
  void runProgram(["serve"], self);
  await turnOfTheLoop();
  self.signal("SIGINT");
  self.monotonicNowMs = 100;
  self.signal("SIGINT");
  expect(self.exits).toEqual([]);
  self.monotonicNowMs = 101;
  self.signal("SIGTERM");
  expect(self.exits).toEqual([130]);
});

test("a signal during the start stops the node once it is up, or ends the process after the stop time-out", async () => {
  let finishStart = (_: RunningNode): void => {};
  const self = new FakeProcess(() => new Promise((resolve) => (finishStart = resolve)));
  const ended = runProgram(["serve", "--stop-timeout-sec", "7"], self);
  await turnOfTheLoop();
  self.signal("SIGTERM");
  await turnOfTheLoop();
  expect(self.timers.map((timer) => timer.dueMs)).toEqual([7000]);
  finishStart(nodeThat());
  expect(await ended).toBe(0);
  expect(self.timers[0]?.isCancelled).toBe(true);
  expect(self.printed).toEqual(["shutting down"]);
});

test("a signal during the start cuts it short", async () => {
  const self = new FakeProcess(
    (_settings, _log, stopping) => new Promise((_, reject) => stopping.addEventListener("abort", () => reject(new Error("cut short")))),
  );
  const ended = runProgram(["serve"], self);
  await turnOfTheLoop();
  self.signal("SIGTERM");
  expect(await ended).toBe(0);
  expect(self.printed).toEqual(["shutting down"]);
});

test("a node that cannot start, fails or cannot stop ends with exit code 1 and one line", async () => {
  const failure = new PicoError("locked", "directory /d is locked\nby process 1");
  const failing: readonly StartNode[] = [
    async () => {
      throw failure;
    },
    async () => nodeThat({ stopped: Promise.resolve({ error: failure }) }),
  ];
  for (const start of failing) {
    const self = new FakeProcess(start);
    expect(await runProgram(["serve"], self)).toBe(1);
    expect(self.errorText).toBe("pico: directory /d is locked by process 1\n");
  }
  const stuck = new FakeProcess(async () => nodeThat({ stop: () => Promise.reject(failure) }));
  const ended = runProgram(["serve"], stuck);
  await turnOfTheLoop();
  stuck.signal("SIGTERM");
  expect(await ended).toBe(1);
});

test("a wrong command line is told in one line with exit code 2, and starts nothing", async () => {
  const wrong = [
    ["serve", "--slots", "3"],
    ["serve", "--kafka-listen=127.0.0.1:1"],
    ["serve", "--auth", "required"],
    ["serve", "--routing", "proxy"],
    ["serve", "--node-id"],
    ["serve", "--node-id", "abc"],
    ["serve", "--node-id="],
    ["serve", "--lissten", "127.0.0.1:1"],
    ["serve", "extra"],
    ["--protocol", "kafka", "serve"],
    ["launch"],
  ];
  for (const words of wrong) {
    const self = new FakeProcess(async () => nodeThat());
    expect([words, await runProgram(words, self)]).toEqual([words, 2]);
    expect(self.errorText).toMatch(/^pico: .+\n$/);
    expect(self.started).toEqual([]);
  }
});

test("a place that cannot be used is a failure of the start: exit code 1", async () => {
  for (const words of [["--meta-url", "mysql://h"], ["--storage", "x"], ["--wal=1@s3://b"], ["--listen", "0.0.0.0:1"]]) {
    const self = new FakeProcess(async () => nodeThat());
    expect([words, await runProgram(["serve", ...words], self)]).toEqual([words, 1]);
    expect(self.errorText).toMatch(/^pico: .+\n$/);
    expect(self.started).toEqual([]);
  }
});

test("a value that begins with a dash may follow its flag as a word, and a global flag may stand on either side", async () => {
  for (const words of [
    ["--protocol", "ds", "serve", "--storage", "-2@mem://d"],
    ["serve", "--storage=-2@mem://d", "--protocol=ds"],
    ["--protocol", "pico", "serve", "--storage", "-2@mem://d", "--protocol", "ds"],
  ]) {
    const self = new FakeProcess(async () => nodeThat({ stopped: Promise.resolve({ error: new Error("enough") }) }), {
      PICO_PROTOCOL: "pico",
    });
    await runProgram(words, self);
    expect(self.started[0]).toMatchObject({ storage: { kind: "memory", id: -2 }, pico: null });
  }
});

test("help and version go to stdout with exit code 0, no command is wrong usage", async () => {
  const version = new FakeProcess(async () => nodeThat());
  expect(await runProgram(["--version"], version)).toBe(0);
  expect(version.printed.join()).toMatch(/^pico \d+\.\d+\.\d+ \(.+\)\n$/);
  const help = new FakeProcess(async () => nodeThat());
  expect(await runProgram(["serve", "--help"], help)).toBe(0);
  expect(help.printed.join()).toContain("PICO_WAL_UPLOAD_INTERVAL_MS");
  const none = new FakeProcess(async () => nodeThat());
  expect(await runProgram([], none)).toBe(2);
  expect(none.printed).toEqual([]);
});

test("help that cannot be written is a failure, and one that nobody reads is none", async () => {
  for (const words of [["--help"], ["help", "serve"], ["admin", "nodes", "--help"], ["--version"], ["completion", "bash"]]) {
    const full = new FakeProcess(() => never);
    full.output.write = async () => {
      throw new Error("the output cannot be written: ENOSPC");
    };
    expect([words, await runProgram(words, full), full.errorText]).toEqual([words, 1, "pico: the output cannot be written: ENOSPC\n"]);
    const closed = new FakeProcess(() => never);
    closed.output.write = async () => {
      throw new OutputClosed("nobody reads the output any more");
    };
    expect([words, await runProgram(words, closed), closed.errorText]).toEqual([words, 0, ""]);
  }
});

test("the log goes to stderr in the form and from the level asked for", async () => {
  const self = new FakeProcess(async (_, log) => {
    log.debug("hidden");
    log.warn("seen");
    throw new PicoError("internal", "enough");
  });
  await runProgram(["serve", "--log-level", "warn", "--log-format", "json"], self);
  const [line = "", last] = self.errorText.split("\n");
  expect(JSON.parse(line)).toMatchObject({ level: "warn", message: "seen" });
  expect(last).toBe("pico: enough");
});

/**
 * A pipe of many GiB into `pico append`, while the server is killed twice and started again:
 *
 *   bun test/cluster/append-pipe.ts [--gib N] [--batch N] [--program PATH]
 *
 * Lines are numbered and of varying length. Afterwards every line is in the stream once and in order, with its bytes,
 * each acknowledgement on stderr was true, and the command never held more memory than it may. Lines are made again
 * from their number to be compared, so that this program holds none of them.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { PicoClient } from "../../src/client/index.ts";
import { MIB } from "../../src/lib/limits.ts";
import { closeSuite } from "../support/test-report.ts";
import { EXECUTABLE, freePorts, NodeProcess, type Program } from "./node-process.ts";

const GIB = 1024 * MIB;
const RESIDENT_BYTES_MAX = 200 * MIB;
const NAME = "/pipe";
/** Lines are made in pieces of about this size. */
const PIECE_BYTES = 1 * MIB;
const MEMORY_SAMPLE_MS = 20;
/** For restarts on a machine that does much else. */
const RETRY_SECONDS = 300;
/** Part of the input at which the server is killed. */
const KILLS_AT = [1 / 3, 2 / 3];

const { values } = parseArgs({
  options: { gib: { type: "string", default: "1" }, batch: { type: "string", default: "10000" }, program: { type: "string" } },
});

/** Text that lines take their tails from. */
const filler = Buffer.from(Array.from({ length: 8192 }, (_, index) => 33 + ((index * 7919 + (index >> 5) * 31) % 94)));

process.exit(await main(Number(values.gib) * GIB));

async function main(bytesMin: number): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "pico-append-pipe-"));
  const program: Program = values.program === undefined ? EXECUTABLE : [values.program];
  const options = { program, ports: await freePorts(), dataDirectory: join(folder, "data"), logPath: join(folder, "log") };
  let node = await NodeProcess.start(options);
  const checks: [string, boolean][] = [];
  try {
    const url = `http://127.0.0.1:${options.ports.pico}`;
    await new PicoClient({ url }).stream(NAME).create({ contentType: "text/plain" });
    const command = new AppendCommand(program, url);
    const startedMs = performance.now();
    const kills = KILLS_AT.map((part) => part * bytesMin);
    const lines = await feed(command.child, bytesMin, async (bytes) => {
      if (bytes < (kills[0] ?? Number.POSITIVE_INFINITY)) return;
      kills.shift();
      console.log(`kill -9 of the server behind ${(bytes / GIB).toFixed(2)} GiB of input, ${command.ackedCount} lines acknowledged`);
      await node.kill();
      node = NodeProcess.spawn(options);
    });
    const exitCode = await command.exited;
    const seconds = (performance.now() - startedMs) / 1000;
    console.log(
      `${lines.count} lines, ${(lines.bytes / GIB).toFixed(2)} GiB in ${seconds.toFixed(1)} s: ${(lines.bytes / MIB / seconds).toFixed(1)} MiB/s`,
    );
    console.log(`peak memory of pico append: ${(command.peakBytes / MIB).toFixed(1)} MiB (${command.samples} samples)`);
    checks.push(
      [`exit code ${exitCode} is 0: ${command.lastWords}`, exitCode === 0],
      [`the server was killed ${KILLS_AT.length - kills.length} times`, kills.length === 0],
      [`${command.ackedCount} lines are acknowledged, all ${lines.count}`, command.ackedCount === lines.count],
      [`acknowledgements follow each other: ${command.wrongAck ?? "yes"}`, command.wrongAck === null],
      [`memory stays below ${RESIDENT_BYTES_MAX / MIB} MiB`, command.samples > 0 && command.peakBytes < RESIDENT_BYTES_MAX],
      await checkStream(url, lines.count),
    );
  } finally {
    await node.kill();
    rmSync(folder, { recursive: true, force: true });
  }
  for (const [what, isTrue] of checks) console.log(`${isTrue ? "ok" : "FAILED"}  ${what}`);
  const failed = checks.filter(([, isTrue]) => !isTrue).length;
  return closeSuite(checks.length - failed, failed);
}

/** `pico append` as a process, with what it says and holds. */
class AppendCommand {
  readonly child: ChildProcess;
  readonly exited: Promise<number | null>;
  ackedCount = 0;
  /** The first acknowledgement that does not follow the one before. */
  wrongAck: string | null = null;
  peakBytes = 0;
  samples = 0;
  lastWords = "";
  #unfinished = "";

  constructor(program: Program, url: string) {
    const [file = "", ...words] = program;
    const flags = ["append", NAME, "--endpoint", url, "--batch", values.batch, "--retry-sec", String(RETRY_SECONDS)];
    this.child = spawn(file, [...words, ...flags], { cwd: "/", env: {}, stdio: ["pipe", "inherit", "pipe"] });
    this.child.stderr?.on("data", (chunk: Buffer) => this.#hear(chunk.toString("utf8")));
    const timer = setInterval(() => this.#sample(), MEMORY_SAMPLE_MS);
    this.exited = new Promise((resolve) => {
      this.child.once("close", (code) => {
        clearInterval(timer);
        resolve(code);
      });
    });
  }

  #hear(text: string): void {
    const lines = (this.#unfinished + text).split("\n");
    this.#unfinished = lines.pop() ?? "";
    for (const line of lines) {
      const [, start, next] = /^start=(\d+) next=(\d+)$/.exec(line) ?? [];
      if (start !== undefined) {
        // Behind a repeat that was recognised the start of the next request tells how far it went.
        if (Number(start) < this.ackedCount) this.wrongAck ??= line;
        this.ackedCount = Number(next);
      } else if (line !== "start=- next=-") {
        this.lastWords = line;
        console.log(`pico append says: ${line}`);
      }
    }
  }

  /** The highest that the system has seen so far. */
  #sample(): void {
    try {
      const kib = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${this.child.pid}/status`, "utf8"))?.[1];
      if (kib === undefined) return;
      this.peakBytes = Math.max(this.peakBytes, Number(kib) * 1024);
      this.samples += 1;
    } catch {
      // It has ended.
    }
  }
}

/** Writes lines until there are enough bytes, at the pace of the command. `onPiece` is told how many there are. */
async function feed(
  child: ChildProcess,
  bytesMin: number,
  onPiece: (bytes: number) => Promise<void>,
): Promise<{ count: number; bytes: number }> {
  const input = child.stdin;
  if (input === null) throw new Error("the command has no input");
  let isBroken = false;
  let wake = () => {};
  input.on("drain", () => wake());
  input.on("error", () => {});
  // Also when the command ends before it reads on.
  child.once("close", () => {
    isBroken = true;
    wake();
  });
  let count = 0;
  let bytes = 0;
  while (bytes < bytesMin && !isBroken) {
    const piece = Buffer.allocUnsafe(PIECE_BYTES + filler.length + 32);
    let size = 0;
    while (size < PIECE_BYTES) {
      size += writeLine(piece, size, count);
      piece[size++] = 0x0a;
      count += 1;
    }
    bytes += size;
    const drained = new Promise<void>((resolve) => {
      wake = resolve;
    });
    if (!input.write(piece.subarray(0, size))) await drained;
    await onPiece(bytes);
  }
  input.end();
  return { count, bytes };
}

/** The line of a number, without its end; returns its length. Most are short, some are kilobytes. */
function writeLine(target: Buffer, at: number, number: number): number {
  const head = target.write(`${number} `, at);
  const length = number % 16 === 0 ? (number * 2_654_435) % 6000 : (number * 40_503) % 600;
  return head + filler.copy(target, at + head, number % 1024, (number % 1024) + length);
}

async function checkStream(url: string, count: number): Promise<[string, boolean]> {
  const startedMs = performance.now();
  const expected = Buffer.alloc(filler.length + 32);
  const stream = new PicoClient({ url }).stream(NAME);
  let seq = 0;
  let bytes = 0;
  for await (const { records } of stream.follow({ live: "off", bytesMax: 4 * MIB })) {
    for (const { body } of records) {
      const size = writeLine(expected, 0, seq);
      if (body === null || expected.compare(body, 0, body.length, 0, size) !== 0) return [`record ${seq} is line ${seq}`, false];
      seq += 1;
      bytes += size;
    }
  }
  const seconds = (performance.now() - startedMs) / 1000;
  console.log(`read back ${seq} records, ${(bytes / GIB).toFixed(2)} GiB in ${seconds.toFixed(1)} s`);
  return [`each of ${count} lines is there once and in order (${seq})`, seq === count];
}

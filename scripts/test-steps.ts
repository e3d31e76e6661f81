/**
 * The one list of what is run to know that the project works, by tier. To add a suite, add a step here. The stages of
 * a tier run one after another, the steps of a stage beside each other: the longest first, so that none is left alone.
 *
 * - `first` (`npm test`): at most 10 minutes.
 * - `second` (`.ci/run`, after the first): at most 15 minutes more.
 * - `long` (`npm run test:long`): hours.
 */

interface StepBase {
  /** Shown beside the step's counts. */
  readonly name: string;
  /** The step is stopped, and has failed, after this long. */
  readonly minutesMax: number;
}

/** Test files of `bun:test`. */
export interface BunTestStep extends StepBase {
  readonly kind: "bun-test";
  /** Folders or files under the project's root. */
  readonly paths: readonly string[];
  /** Folders left out. */
  readonly ignore: readonly string[];
  /** Fewer passed tests than this fail the step, so that a suite cannot shrink unseen. At least 1. */
  readonly passedMin: number;
}

/**
 * A TypeScript program that counts its own tests: before it exits it writes
 * `{"passed": N, "failed": N, "skipped": N}` to the file that `PICO_TEST_REPORT` names, and it exits with
 * 0 only if none failed.
 */
export interface ProgramStep extends StepBase {
  readonly kind: "program";
  readonly file: string;
  readonly arguments: readonly string[];
  /** As for test files. */
  readonly passedMin: number;
}

/** A command judged by its exit code; it adds nothing to the counts. */
export interface CheckStep extends StepBase {
  readonly kind: "check";
  readonly command: readonly string[];
}

export type Step = BunTestStep | ProgramStep | CheckStep;

export type Stage = readonly Step[];

export type Tier = "first" | "second" | "long";

/** Suites that are steps of their own, and so are no part of the unit tests. */
const SEPARATE_FOLDERS = [
  "test/binary",
  "test/browser",
  "test/client",
  "test/cluster",
  "test/conformance",
  "test/long",
  "test/openapi",
  "test/pico",
  "test/proxies",
  "test/quickstart",
  "test/store-faults",
];

const typeCheck: Step = { kind: "check", name: "type check", command: ["node_modules/.bin/tsc", "-p", "."], minutesMax: 4 };
const lint: Step = {
  kind: "check",
  name: "lint and format",
  command: ["node_modules/.bin/biome", "check", "--error-on-warnings", "."],
  minutesMax: 2,
};
const build: Step = { kind: "check", name: "build", command: ["./compile.sh"], minutesMax: 3 };

/** Of the first tier. */
const units: Step = {
  kind: "bun-test",
  name: "unit and contract tests",
  paths: ["test"],
  ignore: SEPARATE_FOLDERS,
  passedMin: 1000,
  minutesMax: 8,
};

/** Of the second tier, which runs two of its steps at once on two cores: each process of the simulator takes one. */
const processes: Stage = [
  bunTests("real processes", ["test/cluster"], 76, 10),
  program("simulation, 200 seeds", "test/simulation/run.ts", ["--seeds", "200", "--jobs", "1"], 200, 10),
  program("schemathesis", "test/openapi/run.ts", [], 20, 6),
  program("dashboard in Chromium", "test/browser/run.ts", [], 26, 8),
  // One a fault, and the look behind a kill.
  program("store faults, 15 s each", "test/store-faults/run.ts", ["--seconds", "15"], 8, 8),
  bunTests("reverse proxies", ["test/proxies"], 13, 5),
  program("1 GiB into pico append, over two kills", "test/cluster/append-pipe.ts", ["--gib", "1"], 6, 8),
  program("broken variants", "test/simulation/variants.ts", [], 10, 12),
  program("Durable Streams conformance on MinIO", "test/conformance/run.ts", ["--minio"], 332, 5),
  program("Durable Streams conformance on Postgres", "test/conformance/run.ts", ["--postgres"], 332, 5),
  // A round each, the last look at the directory, and the time to be ready.
  program("20 kill rounds on MinIO", "test/cluster/kill-rounds.ts", ["--rounds", "20", "--minio"], 22, 5),
  program("20 kill rounds on Postgres", "test/cluster/kill-rounds.ts", ["--rounds", "20", "--postgres"], 22, 5),
  program("10 kill rounds with the WAL in Postgres", "test/cluster/kill-rounds.ts", ["--rounds", "10", "--postgres-wal"], 12, 6),
  program("20 kill rounds", "test/cluster/kill-rounds.ts", ["--rounds", "20"], 22, 4),
  program("client in Chromium", "test/client/run-browser.ts", [], 74, 5),
  program("Pico protocol on MinIO", "test/pico/run.ts", ["--minio"], 135, 4),
  program("Pico protocol on Postgres", "test/pico/run.ts", ["--postgres"], 135, 4),
  program("explorer in Chromium", "test/openapi/explorer.ts", [], 6, 3),
  program("quickstart", "test/quickstart/run.ts", [], 1, 3),
  bunTests("executable", ["test/binary"], 1, 3),
];

export const stages: Readonly<Record<Tier, readonly Stage[]>> = {
  first: [
    [
      units,
      program("Durable Streams conformance", "test/conformance/run.ts", [], 332, 4),
      bunTests("client under Bun", ["test/client"], 89, 4),
      program("Pico protocol", "test/pico/run.ts", [], 135, 4),
      program("client under Node", "test/client/run-node.ts", [], 81, 4),
    ],
  ],
  second: [[typeCheck, lint, build], processes],
  long: [
    [build],
    [program("simulation, 20,000 seeds", "test/simulation/run.ts", ["--seeds", "20000", "--from", "1000000"], 20_000, 360)],
    [program("300 kill rounds", "test/cluster/kill-rounds.ts", ["--rounds", "300"], 316, 60)],
    [program("300 kill rounds on MinIO", "test/cluster/kill-rounds.ts", ["--rounds", "300", "--minio"], 316, 60)],
    [program("100 kill rounds on Postgres", "test/cluster/kill-rounds.ts", ["--rounds", "100", "--postgres"], 106, 60)],
    [program("100 kill rounds with the WAL in Postgres", "test/cluster/kill-rounds.ts", ["--rounds", "100", "--postgres-wal"], 106, 90)],
    [program("10 GiB into pico append, over two kills", "test/cluster/append-pipe.ts", ["--gib", "10"], 6, 120)],
    [program("store faults, 60 s each", "test/store-faults/run.ts", ["--seconds", "60"], 8, 30)],
    // One a fault, the start, the stop, the look behind another start, and the rival.
    [program("failing drives of a MinIO", "test/store-faults/failing-drives.ts", [], 7, 5)],
    [program("store size, 2 GiB", "test/store-faults/store-size.ts", [], 3, 60)],
    [bunTests("slow clients", ["test/long"], 2, 30)],
  ],
};

function program(name: string, file: string, words: readonly string[], passedMin: number, minutesMax: number): ProgramStep {
  return { kind: "program", name, file, arguments: words, passedMin, minutesMax };
}

function bunTests(name: string, paths: readonly string[], passedMin: number, minutesMax: number): BunTestStep {
  return { kind: "bun-test", name, paths, ignore: [], passedMin, minutesMax };
}

/**
 * The one list of what is run to know that the project works, by tier. To add a suite, add a step here.
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

export const steps: Readonly<Record<Tier, readonly Step[]>> = {
  first: [
    { kind: "bun-test", name: "unit and contract tests", paths: ["test"], ignore: SEPARATE_FOLDERS, passedMin: 950, minutesMax: 8 },
    { kind: "program", name: "Durable Streams conformance", file: "test/conformance/run.ts", arguments: [], passedMin: 332, minutesMax: 3 },
    { kind: "program", name: "Pico protocol", file: "test/pico/run.ts", arguments: [], passedMin: 135, minutesMax: 3 },
    { kind: "bun-test", name: "client under Bun", paths: ["test/client"], ignore: [], passedMin: 89, minutesMax: 4 },
    { kind: "program", name: "client under Node", file: "test/client/run-node.ts", arguments: [], passedMin: 81, minutesMax: 4 },
  ],
  second: [
    {
      kind: "program",
      name: "simulation, 200 seeds",
      file: "test/simulation/run.ts",
      arguments: ["--seeds", "200"],
      passedMin: 200,
      minutesMax: 10,
    },
    { kind: "program", name: "broken variants", file: "test/simulation/variants.ts", arguments: [], passedMin: 10, minutesMax: 12 },
    { kind: "program", name: "client in Chromium", file: "test/client/run-browser.ts", arguments: [], passedMin: 74, minutesMax: 4 },
    { kind: "program", name: "schemathesis", file: "test/openapi/run.ts", arguments: [], passedMin: 20, minutesMax: 5 },
    { kind: "check", name: "type check", command: ["node_modules/.bin/tsc", "-p", "."], minutesMax: 3 },
    { kind: "check", name: "lint and format", command: ["node_modules/.bin/biome", "check", "--error-on-warnings", "."], minutesMax: 2 },
    { kind: "check", name: "build", command: ["./compile.sh"], minutesMax: 3 },
    { kind: "program", name: "dashboard in Chromium", file: "test/browser/run.ts", arguments: [], passedMin: 26, minutesMax: 8 },
    { kind: "bun-test", name: "executable", paths: ["test/binary"], ignore: [], passedMin: 1, minutesMax: 3 },
    { kind: "program", name: "explorer in Chromium", file: "test/openapi/explorer.ts", arguments: [], passedMin: 6, minutesMax: 2 },
    { kind: "bun-test", name: "real processes", paths: ["test/cluster"], ignore: [], passedMin: 66, minutesMax: 10 },
    { kind: "program", name: "quickstart", file: "test/quickstart/run.ts", arguments: [], passedMin: 1, minutesMax: 3 },
    { kind: "bun-test", name: "reverse proxies", paths: ["test/proxies"], ignore: [], passedMin: 13, minutesMax: 4 },
    {
      kind: "program",
      name: "1 GiB into pico append, over two kills",
      file: "test/cluster/append-pipe.ts",
      arguments: ["--gib", "1"],
      passedMin: 6,
      minutesMax: 8,
    },
    // One a fault, and the look behind a kill.
    {
      kind: "program",
      name: "store faults, 10 s each",
      file: "test/store-faults/run.ts",
      arguments: ["--seconds", "10"],
      passedMin: 8,
      minutesMax: 6,
    },
    {
      kind: "program",
      name: "Durable Streams conformance on MinIO",
      file: "test/conformance/run.ts",
      arguments: ["--minio"],
      passedMin: 332,
      minutesMax: 4,
    },
    { kind: "program", name: "Pico protocol on MinIO", file: "test/pico/run.ts", arguments: ["--minio"], passedMin: 135, minutesMax: 3 },
    // A round each, the last look at the directory, and the time to be ready.
    {
      kind: "program",
      name: "20 kill rounds on MinIO",
      file: "test/cluster/kill-rounds.ts",
      arguments: ["--rounds", "20", "--minio"],
      passedMin: 22,
      minutesMax: 5,
    },
    {
      kind: "program",
      name: "20 kill rounds",
      file: "test/cluster/kill-rounds.ts",
      arguments: ["--rounds", "20"],
      passedMin: 22,
      minutesMax: 4,
    },
  ],
  long: [
    {
      kind: "program",
      name: "simulation, 20,000 seeds",
      file: "test/simulation/run.ts",
      arguments: ["--seeds", "20000", "--from", "1000000"],
      passedMin: 20_000,
      minutesMax: 360,
    },
    { kind: "check", name: "build", command: ["./compile.sh"], minutesMax: 3 },
    {
      kind: "program",
      name: "300 kill rounds",
      file: "test/cluster/kill-rounds.ts",
      arguments: ["--rounds", "300"],
      passedMin: 316,
      minutesMax: 60,
    },
    {
      kind: "program",
      name: "300 kill rounds on MinIO",
      file: "test/cluster/kill-rounds.ts",
      arguments: ["--rounds", "300", "--minio"],
      passedMin: 316,
      minutesMax: 60,
    },
    {
      kind: "program",
      name: "10 GiB into pico append, over two kills",
      file: "test/cluster/append-pipe.ts",
      arguments: ["--gib", "10"],
      passedMin: 6,
      minutesMax: 120,
    },
    {
      kind: "program",
      name: "store faults, 60 s each",
      file: "test/store-faults/run.ts",
      arguments: ["--seconds", "60"],
      passedMin: 8,
      minutesMax: 30,
    },
    // One a fault, the start, the stop, the look behind another start, and the rival.
    {
      kind: "program",
      name: "failing drives of a MinIO",
      file: "test/store-faults/failing-drives.ts",
      arguments: [],
      passedMin: 7,
      minutesMax: 5,
    },
    { kind: "program", name: "store size, 2 GiB", file: "test/store-faults/store-size.ts", arguments: [], passedMin: 3, minutesMax: 60 },
    { kind: "bun-test", name: "slow clients", paths: ["test/long"], ignore: [], passedMin: 2, minutesMax: 30 },
  ],
};

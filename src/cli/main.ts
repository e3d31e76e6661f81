/** Entry of the executable: joins the command line to the process. */
import { systemClock } from "../lib/clock.ts";
import { fileDescriptorDestination } from "../lib/log.ts";
import { systemRandom } from "../lib/random.ts";
import { startNode } from "../node/node.ts";
import { failureLine } from "./failure.ts";
import { runProgram } from "./program.ts";
import { standardInput, standardOutput } from "./standard-streams.ts";

const errors = fileDescriptorDestination(2);
const output = fileDescriptorDestination(1);

/** A rejection that nobody handles leaves the state of the node unknown; the next start recovers. */
for (const event of ["unhandledRejection", "uncaughtException"] as const) {
  process.on(event, (error: unknown) => {
    errors.write(`${failureLine(error)}\n`);
    if (error instanceof Error && error.stack !== undefined) errors.write(`${error.stack}\n`);
    process.exit(1);
  });
}

// Not awaited: bytecode, which halves the time of a start, is made only for a program without a top-level await.
void runProgram(process.argv.slice(2), {
  environment: process.env,
  workingDirectory: process.cwd(),
  clock: systemClock,
  random: systemRandom,
  input: standardInput(0, process.stdin.isTTY === true, systemClock),
  output: standardOutput(1, systemClock),
  isOutputTerminal: process.stdout.isTTY === true,
  errors,
  isErrorsTerminal: process.stderr.isTTY === true,
  print: (line) => output.write(`${line}\n`),
  onStopSignal: (listener) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => listener(signal));
  },
  exitAtOnce: (code) => process.exit(code),
  startNode,
}).then((exitCode) => process.exit(exitCode));

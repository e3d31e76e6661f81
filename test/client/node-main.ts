/** The client's cases under Node, one after the other; started by `run-node.ts`. */
import { inspect } from "node:util";
import { SuiteVerdicts } from "../support/test-report.ts";
import { clientCases } from "./client-cases.ts";
import { type ClientCase, ClientSuite } from "./client-suite.ts";
import { processStage } from "./serve-process.ts";

/** For a crowded machine: the slowest cases start servers. */
const CASE_MS_MAX = 120_000;

process.exit(await main());

async function main(): Promise<number> {
  const { CLIENT_SUITE_BUN: bunPath, CLIENT_SUITE_ROOT: root } = process.env;
  if (bunPath === undefined || root === undefined) throw new Error("start run-node.ts, which tells where Bun and the project are");
  console.log(`Node ${process.version}`);
  const suite = await ClientSuite.start(processStage({ bunPath, root }));
  const verdicts = new SuiteVerdicts();
  for (const one of clientCases) {
    const error = await runCase(suite, one);
    verdicts.judge(one.name, error === null ? [] : [inspect(error)]);
  }
  await suite.close();
  return verdicts.close();
}

/** What the case threw; null if it passed. */
async function runCase(suite: ClientSuite, one: ClientCase): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Error>((resolve) => {
    timer = setTimeout(() => resolve(new Error(`not over after ${CASE_MS_MAX} ms`)), CASE_MS_MAX);
  });
  const outcome = suite.run(one).then(
    () => null,
    (error: unknown) => error ?? new Error("threw nothing"),
  );
  try {
    return await Promise.race([outcome, late]);
  } finally {
    clearTimeout(timer);
  }
}

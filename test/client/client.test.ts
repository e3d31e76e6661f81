/** The client's cases under Bun; `run-node.ts` runs the same under Node. */
import { afterAll, beforeAll, test } from "bun:test";
import { dirname } from "node:path";
import { clientCases } from "./client-cases.ts";
import { ClientSuite } from "./client-suite.ts";
import { processStage } from "./serve-process.ts";

/** For a crowded machine: the slowest cases start servers. */
const CASE_MS_MAX = 120_000;

let suite: ClientSuite;

beforeAll(async () => {
  suite = await ClientSuite.start(processStage({ bunPath: process.execPath, root: dirname(dirname(import.meta.dir)) }));
});

afterAll(() => suite.close());

for (const one of clientCases) test(one.name, () => suite.run(one), CASE_MS_MAX);

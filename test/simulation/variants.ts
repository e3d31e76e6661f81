/**
 * Shows that the checkers work: each broken variant must fail within 200 seeds.
 * `bun test/simulation/variants.ts`, or with names for some of them. The last line says how many were
 * caught (passed) and how many were not (failed).
 */

import { closeSuite } from "../support/test-report.ts";
import { drawOptions } from "./options.ts";
import { runSimulation } from "./simulation.ts";
import { findVariant, VARIANTS, type Variant } from "./variants/variants.ts";

const SEEDS_MAX = 200;

/** The seed that caught it, with how; null where none did. */
async function catchVariant(variant: Variant): Promise<{ readonly seed: number; readonly failure: Error } | null> {
  const mend = variant.install();
  try {
    for (let seed = 1; seed <= SEEDS_MAX; seed++) {
      const { failure } = await runSimulation(drawOptions(String(seed)), variant.factory);
      if (failure !== null) return { seed, failure };
    }
    return null;
  } finally {
    mend();
  }
}

async function main(names: readonly string[]): Promise<number> {
  const variants = names.length === 0 ? VARIANTS : names.map(findVariant);
  let caught = 0;
  for (const variant of variants) {
    const found = await catchVariant(variant);
    if (found !== null) caught += 1;
    console.log(
      found === null
        ? `${variant.name}: NOT caught in ${SEEDS_MAX} seeds (${variant.fault})`
        : `${variant.name}: caught by seed ${found.seed}: ${found.failure.message}`,
    );
  }
  return closeSuite(caught, variants.length - caught);
}

if (import.meta.main) process.exitCode = await main(process.argv.slice(2));

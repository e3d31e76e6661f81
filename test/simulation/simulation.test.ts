import { expect, test } from "bun:test";
import { composeNodeFactory } from "./compose-node.ts";
import { drawOptions } from "./options.ts";
import { runSimulation } from "./simulation.ts";

/** Real time for a run: it waits for nothing, but the machine may be busy. */
const RUN_MS_MAX = 120_000;

test(
  "the same seed run twice gives the identical trace",
  async () => {
    const options = drawOptions("repeat");
    const first = await runSimulation(options, composeNodeFactory());
    const second = await runSimulation(options, composeNodeFactory());
    expect(first.failure).toBeNull();
    expect(second.hash).toBe(first.hash);
    expect(second.counts).toEqual(first.counts);
  },
  RUN_MS_MAX,
);

test.each(["local", "object"] as const)(
  "a node with its WAL of kind %s keeps its promises through crashes and faults",
  async (walKind) => {
    for (const seed of ["a", "b", "c"]) {
      const { failure } = await runSimulation(drawOptions(`${walKind} ${seed}`, { walKind }), composeNodeFactory());
      expect(failure).toBeNull();
    }
  },
  RUN_MS_MAX,
);

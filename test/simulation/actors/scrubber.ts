/**
 * Has nodes compare store and metadata in the middle of everything: whatever is written, compacted, removed, refused
 * or lost meanwhile, nothing may be reported missing, damaged or unknown to the database. Orphans are deleted as soon
 * as they are seen, far sooner than an operator could ask for; the checker of the log judges each delete.
 */
import type { ScrubReport, ScrubRun } from "../../../src/engine/scrub-report.ts";
import type { SimNode } from "../sim-node.ts";
import { Actor, type Stage } from "../stage.ts";

/** Between two looks whether the life that scrubs has ended. */
const LOOK_MS = 500;

export class ScrubStarter extends Actor {
  constructor(
    stage: Stage,
    name: string,
    thinkMs: number,
    private readonly nodes: readonly SimNode[],
  ) {
    super(stage, name, thinkMs);
  }

  protected async act(): Promise<void> {
    const { prng } = this;
    const { world } = this.stage;
    const request = {
      verifies: prng.chance(0.5),
      deletesOrphans: prng.chance(0.7),
      minAgeMs: prng.pick([0, 0, 1000]),
      by: "operator",
    } as const;
    const node = prng.pick(this.nodes);
    const { built } = node;
    const running = built?.scrub(request) ?? null;
    let run: ScrubRun | undefined;
    while (running !== null && run === undefined && node.built === built) {
      run = (await Promise.race([running, this.sleep(LOOK_MS)])) ?? undefined;
    }
    if (run === undefined) return;
    const { report, error } = run;
    const first = firstFinding(report);
    world.check(first === null, () => `a scrub found ${first}`);
    world.trace.count(error === null ? "scrub finished" : "scrub failed");
    world.trace.count("scrub orphan found", report.orphans.count);
    world.trace.count("scrub orphan deleted", report.deletedCount);
  }
}

/** What must never be found. */
function firstFinding({ missing, wrongSize, damaged, unexplained }: ScrubReport): string | null {
  const [lost] = [...missing.items, ...wrongSize.items, ...damaged.items, ...unexplained.items];
  return lost === undefined ? null : JSON.stringify(lost);
}

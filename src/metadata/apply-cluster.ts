/** Commands on what the cluster has once. */
import type { ApplyContext } from "./apply.ts";
import type { Outcome } from "./command.ts";
import { type CommandOf, done } from "./outcome.ts";

export function applyHoldRemoval({ state }: ApplyContext, command: CommandOf<"hold_removal">): Outcome {
  state.putCounters({ removalHeldUntilMs: command.untilMs });
  return done();
}

/** Never lowers: an id that was given out stays given out. */
export function applyRaiseIds({ state }: ApplyContext, command: CommandOf<"raise_ids">): Outcome {
  const { nextStreamId, nextObjectId } = state.counters;
  state.putCounters({
    nextStreamId: Math.max(nextStreamId, command.nextStreamId),
    nextObjectId: Math.max(nextObjectId, command.nextObjectId),
  });
  return done();
}

/** The operator's hold on all that leaves the store (`hold_removal`), as everybody asks for it who deletes. */
import type { Metadata } from "./metadata.ts";
import type { View } from "./view.ts";

export interface HeldLog extends Pick<Metadata, "databaseNowMs" | "isDatabaseClockSteady"> {
  readonly view: Pick<View, "removalHeldUntilMs">;
}

/** A hold ends by the database's clock, and never while that cannot be trusted: a jump must not end one in the middle of a backup. */
export function isRemovalHeld(metadata: HeldLog): boolean {
  const { removalHeldUntilMs } = metadata.view;
  if (removalHeldUntilMs === null) return false;
  return !metadata.isDatabaseClockSteady || metadata.databaseNowMs() < removalHeldUntilMs;
}

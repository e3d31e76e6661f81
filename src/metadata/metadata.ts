/** The surface of the metadata log that other folders build on; `metadata-log.ts` implements it. */
import type { RegistrationName } from "../lib/registration.ts";
import type { SentAt } from "../lib/sent-at.ts";
import type { Command, Outcome } from "./command.ts";
import type { View } from "./view.ts";

/** A command on its way. */
export interface Proposal {
  /**
   * What this node's apply made of it. Rejects with `unavailable` or `fenced_node` where it has certainly
   * not taken effect and never will: withdrawn, refused by the database, never sent because the queue is
   * full or the log stopped, or this registration is fenced. A lost answer is settled by repeating the
   * insert, for as long as it takes; it never rejects for that. Only a node that stops meanwhile rejects
   * with `unknown_outcome`.
   */
  readonly outcome: Promise<Outcome>;
  /** True once the batch that holds it has been handed to SQL: from then on the outcome is open. */
  readonly isSent: boolean;
  /** Takes it back if it is not sent; then `outcome` rejects with `unavailable`. False: too late. */
  withdraw(): boolean;
}

export interface Metadata {
  readonly view: View;
  /** This node's registration; null before `register` was applied. */
  readonly registration: RegistrationName | null;
  /** Estimate of the database's clock: last answer plus monotonic time since. */
  databaseNowMs(): number;
  /** True while that estimate can be trusted (the database's clock did not jump against the monotonic one). */
  readonly isDatabaseClockSteady: boolean;
  /** A batch has been out for longer than an answer takes: what waits for the log may wait long. */
  readonly isAnswerOverdue: boolean;
  /** When the last heartbeat that was taken had been sent; null before the first. */
  readonly lastHeartbeat: SentAt | null;
  propose(command: Command): Proposal;
  /** Applies everything that is in the log now: one shared read of the head. Rejects with `unavailable` where SQL does not answer in time. */
  catchUp(): Promise<void>;
  /** Calls `listener` after each applied row, with the commands and outcomes of it. Returns a function that ends it. */
  onApplied(listener: (commands: readonly Command[], outcomes: readonly Outcome[], proposer: RegistrationName) => void): () => void;
}

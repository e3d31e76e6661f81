/**
 * Apply: the pure step from state to state. Synchronous; it reads no clock (times are the row's), no
 * setting and no chance, so that every node makes the same state of the same log. Constants that it
 * depends on (`STREAM_IDS_PER_RESERVATION`) belong to the command version.
 *
 * Invariants:
 * - Row n+1 is applied after row n and after nothing else.
 * - A command whose precondition fails changes nothing, with one exception that its case names
 *   (`acquire_stream` past the deadline removes).
 * - Nothing changes in the name of a registration that is unknown, fenced or ended.
 * - A batch of a registration takes effect once, whatever is in the log.
 */

import { unreachable } from "../lib/assert.ts";
import { type RegistrationName, sameRegistration } from "../lib/registration.ts";
import { applyHoldRemoval, applyRaiseIds } from "./apply-cluster.ts";
import { applyEnd, applyFence, applyRegister, applyRemoveNode, applyReserveIds, applyResize } from "./apply-node.ts";
import { applyCommit, applyCompact, applyDestroy, applyPrepare, applyRemove } from "./apply-object.ts";
import { applyAcquire, applyFinishTransfer, applyRelease, applyStartTransfer } from "./apply-ownership.ts";
import { applyCreate, applyDelete, applyExpire, applyStoreDeadlines, applyTrim } from "./apply-stream.ts";
import type { Command, Outcome } from "./command.ts";
import type { RegistrationEntry } from "./entries.ts";
import { refused } from "./outcome.ts";
import type { MetadataState } from "./state.ts";

/** A log row with its payload decoded. */
export interface CommandRow {
  readonly index: number;
  readonly atMs: number;
  readonly rowId: string;
  readonly proposer: RegistrationName;
  /** Number of the batch in its registration, from 0. */
  readonly batch: number;
  /** Command version that the batch needs. */
  readonly version: number;
  readonly commands: readonly Command[];
}

/** What the cases get: the state and what the row says. */
export interface ApplyContext {
  readonly state: MetadataState;
  readonly index: number;
  readonly atMs: number;
  /** Live at this command. */
  readonly proposer: RegistrationEntry;
}

/** Applies the row and returns an outcome a command. */
export function apply(state: MetadataState, row: CommandRow): readonly Outcome[] {
  state.beginRow(row.index, row.rowId, row.atMs, row.version);
  const outcomes = applyBatch(state, row);
  state.endRow();
  return outcomes;
}

/** Whether the row repeats the last applied batch of its registration, so that applying it changes nothing but the index. */
export function isRepeat(state: MetadataState, row: Pick<CommandRow, "proposer" | "batch">): boolean {
  return state.registration(row.proposer)?.lastBatch === row.batch;
}

function applyBatch(state: MetadataState, row: CommandRow): readonly Outcome[] {
  const before = state.registration(row.proposer);
  if (before !== null) {
    // The row of a batch may have been truncated before a delayed repeat of it arrived.
    if (row.batch === before.lastBatch) return before.lastOutcomes;
    if (before.state !== "live") return row.commands.map(() => refused("proposer_dead"));
    if (row.batch !== before.lastBatch + 1) return row.commands.map(() => refused("batch_order"));
  }
  const outcomes = row.commands.map((command) => applyCommand(state, row, command));
  const after = state.registration(row.proposer);
  if (after !== null) state.putRegistration({ ...after, lastBatch: row.batch, lastOutcomes: outcomes });
  return outcomes;
}

function applyCommand(state: MetadataState, row: CommandRow, command: Command): Outcome {
  const { index, atMs } = row;
  if (command.type === "register") {
    const isOwn = sameRegistration(command.node, row.proposer) && row.batch === 0;
    return isOwn ? applyRegister(state, atMs, command) : refused("proposer_dead");
  }
  const proposer = state.registration(row.proposer);
  if (proposer === null || proposer.state !== "live") return refused("proposer_dead");
  const context: ApplyContext = { state, index, atMs, proposer };
  switch (command.type) {
    case "fence":
      return applyFence(context, command);
    case "end":
      return applyEnd(context, command);
    case "resize":
      return applyResize(context, command);
    case "remove_node":
      return applyRemoveNode(context, command);
    case "reserve_ids":
      return applyReserveIds(context);
    case "hold_removal":
      return applyHoldRemoval(context, command);
    case "raise_ids":
      return applyRaiseIds(context, command);
    case "create_stream":
      return applyCreate(context, command);
    case "delete_stream":
      return applyDelete(context, command);
    case "expire_stream":
      return applyExpire(context, command);
    case "trim_stream":
      return applyTrim(context, command);
    case "store_deadlines":
      return applyStoreDeadlines(context, command);
    case "acquire_stream":
      return applyAcquire(context, command);
    case "release_stream":
      return applyRelease(context, command);
    case "start_transfer":
      return applyStartTransfer(context, command);
    case "finish_transfer":
      return applyFinishTransfer(context, command);
    case "prepare_objects":
      return applyPrepare(context, command);
    case "commit":
      return applyCommit(context, command);
    case "compact":
      return applyCompact(context, command);
    case "destroy_objects":
      return applyDestroy(context, command);
    case "remove_objects":
      return applyRemove(context, command);
    default:
      return unreachable(command);
  }
}

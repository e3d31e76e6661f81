/**
 * Offering one segment to a WAL store until it is known whose segment the number holds.
 *
 * Its number of attempts has no bound, their pace has: the bytes were fixed by the first attempt, so nothing
 * else can be done with the number. An answer that was lost needs no step of its own: the next create says
 * `exists`, and reading back tells whose bytes those are. Absent is not settled, and damaged is not foreign.
 */
import { backOffMs } from "../lib/back-off.ts";
import { equalBytes } from "../lib/bytes.ts";
import { type Clock, sleep } from "../lib/clock.ts";
import { isPicoError, PicoError } from "../lib/errors.ts";
import { WAL_BAD_READS_MAX, WAL_RETRY_MS_MAX, WAL_RETRY_MS_MIN } from "../lib/limits.ts";
import type { Random } from "../lib/random.ts";
import type { RegistrationName } from "../lib/registration.ts";
import { decodeSegment, describeSegment } from "./wal-segment-format.ts";
import type { WalStore } from "./wal-store.ts";

export interface SettlementOptions {
  readonly store: WalStore;
  readonly registration: RegistrationName;
  readonly clock: Clock;
  readonly random: Random;
  /** Ends the attempts. */
  readonly signal: AbortSignal;
  /** Called before each attempt but the first, with what was wrong with the one before. */
  readonly onRetry: (error: PicoError) => void;
}

/** Null: a segment, which does not say who wrote it. */
interface Foreign {
  readonly foreignBy: RegistrationName | null;
}

/**
 * `ours`: the segment is durable. `Foreign`: someone else's, or a tombstone, holds the number. `stopped`: the
 * signal came first. Throws `corrupt` where the number holds damaged bytes, and whatever the store throws that
 * no retry mends: `durability` above all.
 */
export async function settleSegment(options: SettlementOptions, number: number, bytes: Uint8Array): Promise<"ours" | Foreign | "stopped"> {
  const { store, registration, clock, random, signal } = options;
  let badReads = 0;
  for (let attempt = 1; !signal.aborted; attempt++) {
    let failure: PicoError;
    try {
      if ((await store.create(registration, number, bytes)) === "created") return "ours";
      const found = judge(await store.read(registration, number), options, number, bytes);
      if (found === "ours" || typeof found === "object") return found;
      if (found === "damaged" && ++badReads >= WAL_BAD_READS_MAX) {
        const where = describeSegment(registration, number);
        throw new PicoError("corrupt", `${where} reads back damaged after it was written`, { where, number });
      }
      failure = new PicoError("unknown_outcome", `${describeSegment(registration, number)} exists and reads back ${found}`, { number });
    } catch (error) {
      if (!isRetryable(error)) throw error;
      failure = error;
    }
    options.onRetry(failure);
    await sleep(clock, backOffMs(random, attempt, WAL_RETRY_MS_MIN, WAL_RETRY_MS_MAX), signal);
  }
  return "stopped";
}

function judge(
  stored: Uint8Array | null,
  { registration }: SettlementOptions,
  number: number,
  bytes: Uint8Array,
): "ours" | Foreign | "absent" | "damaged" {
  if (stored === null) return "absent";
  if (equalBytes(stored, bytes)) return "ours";
  try {
    return { foreignBy: decodeSegment(stored, registration, number).tombstoneBy };
  } catch (error) {
    if (isPicoError(error, "corrupt")) return "damaged";
    throw error;
  }
}

/** Whether the same create may succeed later. */
function isRetryable(error: unknown): error is PicoError {
  return isPicoError(error, "storage_failed") || isPicoError(error, "storage_full") || isPicoError(error, "unknown_outcome");
}

/**
 * The proposer: brings this registration's commands into the log by group commit.
 *
 * Invariants:
 * - One batch is in flight. The next one takes what has collected meanwhile, up to the limits.
 * - A number belongs to one batch with one row id. It is given to another batch only when SQL has said
 *   for certain that the first was not inserted; until then the same insert is repeated (FAULTS D4).
 * - A batch is settled by the row that this node applied, never by the answer of an insert alone.
 * - A proposal is settled once: by its outcome, or rejected.
 */
import { backOffMs } from "../lib/back-off.ts";
import { type Clock, sleep } from "../lib/clock.ts";
import { DurationHistogram } from "../lib/duration-histogram.ts";
import { isPicoError, messageOf, PicoError } from "../lib/errors.ts";
import { fencedNode } from "../lib/fenced-node.ts";
import {
  COMMAND_BATCH_BYTES_MAX,
  COMMANDS_PER_BATCH_MAX,
  PROPOSAL_OVERDUE_MS,
  PROPOSAL_RETRY_MAX_MS,
  PROPOSAL_RETRY_MIN_MS,
  PROPOSAL_TRIES_MAX,
  PROPOSALS_WAITING_MAX,
} from "../lib/limits.ts";
import { type Random, randomHex } from "../lib/random.ts";
import type { RegistrationName } from "../lib/registration.ts";
import type { BatchInsert, BatchOutcome, LogRow, SqlStore } from "../sql/sql-store.ts";
import type { Command, Outcome } from "./command.ts";
import { BATCH_OVERHEAD_BYTES, encodeBatch, encodeCommand } from "./command-format.ts";
import type { Proposal } from "./metadata.ts";
import { refused } from "./outcome.ts";

export type FenceMark = BatchInsert["fences"][number];

export interface ProposerOptions {
  readonly registration: RegistrationName;
  readonly store: SqlStore;
  readonly clock: Clock;
  readonly random: Random;
  /** A row that was inserted just now, with the monotonic time before the insert. */
  readonly onInserted: (row: LogRow, sentMs: number) => void;
  /** The row is in the log at an index that is not applied yet. */
  readonly onFound: () => void;
  readonly onFatal: (error: unknown) => void;
}

interface Waiting {
  readonly encoded: Uint8Array;
  readonly fences: readonly FenceMark[];
  /** Monotonic time of the proposal. */
  readonly proposedMs: number;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: PicoError) => void;
  state: "waiting" | "sent" | "withdrawn";
}

interface Flight {
  readonly insert: BatchInsert;
  readonly members: readonly Waiting[];
  /** Monotonic time of the first insert. */
  readonly sentMs: number;
  /** An insert may have taken effect, so that no later refusal is certain. */
  isDoubtful: boolean;
  isSettled: boolean;
  /** Aborts when it is settled: ends every pause and wait for it. */
  readonly settled: AbortController;
}

export class Proposer {
  /** From a proposal to its outcome, applied here. */
  readonly durations = new DurationHistogram();
  readonly #options: ProposerOptions;
  #queue: Waiting[] = [];
  #withdrawnCount = 0;
  #flight: Flight | null = null;
  #nextBatch = 0;
  #isPumping = false;
  #stopError: PicoError | null = null;

  constructor(options: ProposerOptions) {
    this.#options = options;
  }

  /** True from the first insert of a batch until it is settled. */
  get isSending(): boolean {
    return this.#flight !== null;
  }

  /** True while the batch in flight waits for longer than the database takes when it is well. */
  get isOverdue(): boolean {
    return this.#flight !== null && this.#options.clock.monotonicMs() - this.#flight.sentMs > PROPOSAL_OVERDUE_MS;
  }

  get waitingCount(): number {
    return this.#queue.length - this.#withdrawnCount;
  }

  /** `fences`: the registrations that the command fences, with the heartbeat counter that was seen. Such a command travels alone. */
  propose(command: Command, fences: readonly FenceMark[] = []): Proposal {
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
    // Who does not wait for the outcome must not end the process by it.
    promise.catch(() => undefined);
    const proposedMs = this.#options.clock.monotonicMs();
    const waiting: Waiting = { encoded: encodeCommand(command), fences, proposedMs, resolve, reject, state: "waiting" };
    if (this.#stopError !== null) reject(this.#stopError);
    else if (this.waitingCount >= PROPOSALS_WAITING_MAX) {
      reject(unavailable(`${PROPOSALS_WAITING_MAX} commands wait for the database`));
    } else {
      this.#queue.push(waiting);
      this.#pump().catch((error) => this.#options.onFatal(error));
    }
    const withdraw = () => this.#withdraw(waiting);
    return {
      outcome: promise,
      get isSent() {
        return waiting.state === "sent";
      },
      withdraw,
    };
  }

  /** This node applied a row of this registration. */
  settle(batch: number, rowId: string, outcomes: readonly Outcome[]): void {
    const flight = this.#flight;
    if (flight === null || flight.insert.batch !== batch || flight.insert.rowId !== rowId) return;
    flight.members.forEach((member, position) => {
      const outcome = outcomes[position];
      if (outcome === undefined) member.reject(new PicoError("internal", `batch ${batch} has no outcome ${position}`));
      else member.resolve(outcome);
    });
    const nowMs = this.#options.clock.monotonicMs();
    for (const { proposedMs } of flight.members) this.durations.record(nowMs - proposedMs);
    this.#land(flight, batch + 1);
  }

  /**
   * Takes no more proposals and rejects what waits with `error`. What is in flight is rejected with
   * `fenced_node` where `isDead` says that it can no longer take effect, else with `unknown_outcome`.
   */
  stop(error: PicoError, isDead: boolean): void {
    if (this.#stopError !== null) return;
    this.#stopError = error;
    const queue = this.#queue;
    this.#queue = [];
    this.#withdrawnCount = 0;
    for (const waiting of queue) waiting.reject(error);
    const flight = this.#flight;
    if (flight === null) return;
    const open = isDead
      ? error
      : new PicoError("unknown_outcome", "the node stopped before the outcome of the command was known", {}, error);
    for (const member of flight.members) member.reject(open);
    this.#land(flight, this.#nextBatch);
  }

  #withdraw(waiting: Waiting): boolean {
    if (waiting.state !== "waiting" || this.#stopError !== null) return waiting.state === "withdrawn";
    waiting.state = "withdrawn";
    this.#withdrawnCount += 1;
    waiting.reject(unavailable("the command was withdrawn before it was sent"));
    return true;
  }

  async #pump(): Promise<void> {
    if (this.#isPumping) return;
    this.#isPumping = true;
    try {
      // Proposals made in the same turn share the first batch.
      await Promise.resolve();
      for (let members = this.#takeMembers(); members.length > 0; members = this.#takeMembers()) {
        await this.#send(this.#takeOff(members));
      }
    } finally {
      this.#isPumping = false;
    }
  }

  #takeMembers(): Waiting[] {
    const members: Waiting[] = [];
    let bytes = BATCH_OVERHEAD_BYTES;
    let taken = 0;
    for (const waiting of this.#queue) {
      if (waiting.state === "withdrawn") {
        taken += 1;
        this.#withdrawnCount -= 1;
        continue;
      }
      const isFull = members.length >= COMMANDS_PER_BATCH_MAX || bytes + waiting.encoded.length > COMMAND_BATCH_BYTES_MAX;
      const isAlone = waiting.fences.length > 0 || (members[0]?.fences.length ?? 0) > 0;
      if (members.length > 0 && (isFull || isAlone)) break;
      members.push(waiting);
      bytes += waiting.encoded.length;
      taken += 1;
    }
    this.#queue.splice(0, taken);
    return members;
  }

  #takeOff(members: readonly Waiting[]): Flight {
    const { registration, random, clock } = this.#options;
    for (const member of members) member.state = "sent";
    const insert: BatchInsert = {
      rowId: randomHex(random, 16),
      proposer: registration,
      batch: this.#nextBatch,
      payload: encodeBatch(members.map((member) => member.encoded)),
      fences: members.flatMap((member) => member.fences),
    };
    const flight: Flight = {
      insert,
      members,
      sentMs: clock.monotonicMs(),
      isDoubtful: false,
      isSettled: false,
      settled: new AbortController(),
    };
    this.#flight = flight;
    return flight;
  }

  /** Returns when the flight is settled: its row applied, certainly refused by SQL, or the proposer stopped. */
  async #send(flight: Flight): Promise<void> {
    const { store, clock, random } = this.#options;
    for (let tries = 1; !flight.isSettled; tries++) {
      const sentMs = clock.monotonicMs();
      try {
        const answer = await store.insertBatch(flight.insert);
        if (flight.isSettled) return;
        this.#takeAnswer(flight, answer, sentMs);
        await whenAborted(flight.settled.signal);
        return;
      } catch (error) {
        if (isPicoError(error, "corrupt")) return this.#options.onFatal(error);
        const isCertain = isPicoError(error, "database_failed") || isPicoError(error, "storage_full");
        if (!isCertain) flight.isDoubtful = true;
        if (!flight.isSettled && !flight.isDoubtful && tries >= PROPOSAL_TRIES_MAX) {
          for (const member of flight.members) member.reject(unavailable(`the database refused the command: ${messageOf(error)}`, error));
          this.#land(flight, this.#nextBatch);
          return;
        }
      }
      await sleep(clock, backOffMs(random, tries, PROPOSAL_RETRY_MIN_MS, PROPOSAL_RETRY_MAX_MS), flight.settled.signal);
    }
  }

  #takeAnswer(flight: Flight, answer: BatchOutcome, sentMs: number): void {
    const { insert } = flight;
    if (answer.inserted) {
      const { rowId, proposer, batch, payload } = insert;
      this.#options.onInserted({ index: answer.index, atMs: answer.atMs, rowId, proposer, batch, payload }, sentMs);
    } else if (answer.reason === "victim_alive") {
      // Nothing was inserted, and the number is free: the repeat of an insert that took effect is answered by `exists`.
      for (const member of flight.members) member.resolve(refused("node_alive"));
      this.#land(flight, this.#nextBatch);
    } else if (answer.rowId === insert.rowId) {
      this.#options.onFound();
    } else {
      this.#options.onFatal(fencedNode(insert.proposer, null, `batch ${insert.batch} of its commands is another process's`));
    }
  }

  #land(flight: Flight, nextBatch: number): void {
    this.#flight = null;
    this.#nextBatch = nextBatch;
    flight.isSettled = true;
    flight.settled.abort();
  }
}

function unavailable(reason: string, cause?: unknown): PicoError {
  return new PicoError("unavailable", `metadata change refused: ${reason}`, { retryAfterSeconds: 1 }, cause);
}

function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/**
 * The metadata log without SQL, for tests of what stands on it: a proposal is a row of its own and is
 * applied in the next microtask by the real apply. `hold` keeps rows back, as a database that does not
 * answer would.
 */
import type { Clock } from "../../src/lib/clock.ts";
import { PicoError } from "../../src/lib/errors.ts";
import { formatRegistration, type RegistrationName } from "../../src/lib/registration.ts";
import type { SentAt } from "../../src/lib/sent-at.ts";
import { apply } from "../../src/metadata/apply.ts";
import type { Command, Outcome, WalLocation } from "../../src/metadata/command.ts";
import { COMMAND_VERSION } from "../../src/metadata/command-format.ts";
import type { Metadata, Proposal } from "../../src/metadata/metadata.ts";
import { MetadataState } from "../../src/metadata/state.ts";

export class DirectMetadata implements Metadata {
  registration: RegistrationName | null = null;
  isDatabaseClockSteady = true;
  isAnswerOverdue = false;
  lastHeartbeat: SentAt | null = null;
  /** What registrations say of their WAL. */
  walLocation: WalLocation = { kind: "local", description: "test" };
  /** How far this node's estimate of the database's clock is ahead. */
  databaseOffsetMs = 0;
  readonly #held: (() => void)[] = [];
  #isHolding = false;
  /** The next batch of each registration that a test speaks for. */
  readonly #batches = new Map<string, number>();
  #listeners = new Set<Parameters<Metadata["onApplied"]>[0]>();

  constructor(
    private readonly clock: Clock,
    readonly view = new MetadataState(),
  ) {}

  databaseNowMs(): number {
    return this.clock.nowMs() + this.databaseOffsetMs;
  }

  /** Proposals kept back by `hold`. */
  get heldCount(): number {
    return this.#held.length;
  }

  /** Registers `node`; returns its first stream id. */
  register(node: RegistrationName): number {
    this.registration = node;
    const outcome = this.#apply({
      type: "register",
      node,
      addresses: { pico: null, durableStreams: null, admin: null },
      wal: this.walLocation,
      slots: 1,
      failoverTimeoutMs: 5000,
      commandVersion: COMMAND_VERSION,
      replaces: this.view.node(node.nodeId)?.lastEpoch ?? null,
    });
    if (!outcome.applied) throw new Error(`register was refused: ${outcome.code}`);
    return outcome.facts.firstStreamId ?? 0;
  }

  propose(command: Command): Proposal {
    let isSent = false;
    let isWithdrawn = false;
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
    const send = () => {
      if (isWithdrawn) return;
      isSent = true;
      resolve(this.#apply(command));
    };
    if (this.#isHolding) this.#held.push(send);
    else queueMicrotask(send);
    return {
      outcome: promise,
      get isSent() {
        return isSent;
      },
      withdraw: () => {
        if (isSent) return false;
        isWithdrawn = true;
        reject(new PicoError("unavailable", "withdrawn"));
        return true;
      },
    };
  }

  async catchUp(): Promise<void> {}

  onApplied(listener: Parameters<Metadata["onApplied"]>[0]): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  hold(): void {
    this.#isHolding = true;
  }

  release(): void {
    this.#isHolding = false;
    for (const send of this.#held.splice(0)) send();
  }

  #apply(command: Command): Outcome {
    const proposer = this.registration ?? { nodeId: 0, nodeEpoch: 0 };
    const batch = this.#batches.get(formatRegistration(proposer)) ?? 0;
    this.#batches.set(formatRegistration(proposer), batch + 1);
    const row = {
      index: this.view.appliedIndex + 1,
      atMs: this.clock.nowMs(),
      rowId: String(this.view.appliedIndex + 1).padStart(32, "0"),
      proposer,
      batch,
      version: COMMAND_VERSION,
      commands: [command],
    };
    const [outcome] = apply(this.view, row);
    if (outcome === undefined) throw new Error("apply gives an outcome a command");
    for (const listener of this.#listeners) listener([command], [outcome], proposer);
    return outcome;
  }
}

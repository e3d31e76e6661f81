/**
 * A second node as the others see it: a registration whose heartbeats say that it lags behind the log, by up to
 * minutes. It serves nobody; its view is what removal has to wait for. Now and then it dies without a word, and
 * another life of it comes later.
 */
import { formatRegistration, type RegistrationName } from "../../../src/lib/registration.ts";
import type { Command } from "../../../src/metadata/command.ts";
import { COMMAND_VERSION, encodeBatch, encodeCommand } from "../../../src/metadata/command-format.ts";
import type { LogChecker } from "../checkers/log-checker.ts";
import { NEIGHBOUR_ID } from "../checkers/store-checker.ts";
import type { SimDatabase } from "../seams/sim-database.ts";
import { Actor, type Stage } from "../stage.ts";

const BEAT_MS = 1000;
/** At each beat. */
const DEATH_CHANCE = 0.01;
/** Longer than the others wait before a heartbeat that stands still counts no more. */
const DEAD_MS_MIN = 70_000;
const DEAD_MS_MAX = 200_000;

export class Neighbour extends Actor {
  #isLeaving = false;
  #name: RegistrationName | null = null;
  #epoch = 0;
  #batch = 0;
  #counter = 0;
  #lagMs = 0;
  #reportedIndex = 0;
  /** Where the log ended at these times. */
  #samples: { readonly atMs: number; readonly index: number }[] = [];

  constructor(
    stage: Stage,
    private readonly database: SimDatabase,
    private readonly checker: LogChecker,
  ) {
    super(stage, "neighbour", BEAT_MS);
  }

  /** Goes on behind the others' end, for as long as the store settles. */
  override async run(): Promise<void> {
    while (!this.#isLeaving) {
      await this.sleep(this.prng.around(BEAT_MS));
      if (!this.#isLeaving) await this.act();
    }
    // Nobody would end what it leaves.
    if (this.#name === null && this.#epoch > 0) this.#begin();
    if (this.#name !== null) this.#insert([{ type: "end", victim: this.#name, lastNumber: 0, heir: null }]);
    this.#fall();
  }

  leave(): void {
    this.#isLeaving = true;
  }

  protected async act(): Promise<void> {
    if (this.#name === null) this.#begin();
    else if (this.prng.chance(DEATH_CHANCE)) {
      this.#fall();
      const { world } = this.stage;
      world.trace.count("neighbour dies");
      const wakesMs = world.nowMs + this.prng.magnitude(DEAD_MS_MIN, DEAD_MS_MAX);
      while (!this.#isLeaving && world.nowMs < wakesMs) await this.sleep(BEAT_MS);
      return;
    }
    this.#beat();
  }

  #begin(): void {
    const predecessor = this.#epoch === 0 ? null : { nodeId: NEIGHBOUR_ID, nodeEpoch: this.#epoch };
    this.#epoch += 1;
    const node = { nodeId: NEIGHBOUR_ID, nodeEpoch: this.#epoch };
    this.#name = node;
    this.#batch = 0;
    this.#counter = 0;
    this.#lagMs = this.prng.between(1000, 200_000);
    const register: Command = {
      type: "register",
      node,
      addresses: { pico: null, durableStreams: null, admin: null },
      wal: { kind: "object", description: "none" },
      slots: 1,
      failoverTimeoutMs: 5000,
      commandVersion: COMMAND_VERSION,
      replaces: predecessor?.nodeEpoch ?? null,
    };
    const end: Command[] = predecessor === null ? [] : [{ type: "end", victim: predecessor, lastNumber: 0, heir: null }];
    this.#insert([register, ...end]);
    this.#reportedIndex = this.checker.state.appliedIndex;
    this.#samples = [];
    this.stage.world.trace.count("neighbour begins");
  }

  #beat(): void {
    const registration = this.#name;
    if (registration === null) return;
    const { world } = this.stage;
    this.#samples.push({ atMs: world.nowMs, index: this.checker.state.appliedIndex });
    while (this.#samples[0] !== undefined && this.#samples[0].atMs <= world.nowMs - this.#lagMs) {
      this.#reportedIndex = Math.max(this.#reportedIndex, this.#samples.shift()?.index ?? 0);
    }
    this.#counter += 1;
    const beat = { registration, counter: this.#counter, appliedIndex: this.#reportedIndex, recovering: null, load: "{}" };
    this.database.statements.heartbeat(beat);
    this.checker.laggard = { name: formatRegistration(registration), appliedIndex: this.#reportedIndex };
  }

  /** Nothing is heard of it any more. */
  #fall(): void {
    this.#name = null;
    this.checker.laggard = null;
  }

  #insert(commands: readonly Command[]): void {
    const proposer = this.#name ?? { nodeId: NEIGHBOUR_ID, nodeEpoch: this.#epoch };
    const rowId = `${this.#epoch}${String(this.#batch).padStart(4, "0")}`.padStart(32, "7");
    const payload = encodeBatch(commands.map(encodeCommand));
    const outcome = this.database.insertBatch({ rowId, proposer, batch: this.#batch, payload, fences: [] });
    this.stage.world.check(outcome.inserted, () => `the neighbour's batch ${this.#batch} was not inserted`);
    this.#batch += 1;
  }
}

/**
 * Random command sequences for properties of apply: mostly commands that make sense in the present state,
 * some that cannot, batches repeated now and then, time that mostly goes on.
 */
import type { Command, ObjectSummary, StreamSettings } from "../../src/metadata/command.ts";
import { COMMAND_VERSION } from "../../src/metadata/command-format.ts";
import type { ObjectEntry, RegistrationEntry } from "../../src/metadata/entries.ts";
import type { SeededRandom } from "../support/seeded-random.ts";
import { registerCommand, StateFixture } from "./state-fixture.ts";

const NODES = 4;

export class RandomCommands {
  readonly fixture = new StateFixture();
  #names = 0;

  constructor(readonly random: SeededRandom) {}

  /** Applies one more random row to the fixture's state. */
  step(): void {
    const { fixture, random } = this;
    fixture.atMs += random.fraction() < 0.05 ? -random.below(2000) : random.below(2000);
    const live = [...fixture.state.registrations()].filter((entry) => entry.state === "live");
    if (live.length === 0 || random.fraction() < 0.03) {
      this.#register();
      return;
    }
    const proposer = random.fraction() < 0.05 ? random.pick([...fixture.state.registrations()]) : random.pick(live);
    const known = fixture.state.registration(proposer.name)?.lastBatch ?? 0;
    const batch = random.fraction() < 0.05 ? Math.max(0, known - random.below(2)) : known + 1;
    const commands = Array.from({ length: 1 + random.below(4) }, () => this.#command(proposer));
    fixture.batch(proposer.name, commands, batch);
  }

  #register(): void {
    const { fixture, random } = this;
    const nodeId = random.below(NODES);
    const lastEpoch = fixture.state.node(nodeId)?.lastEpoch ?? null;
    const node = { nodeId, nodeEpoch: (lastEpoch ?? 0) + (random.fraction() < 0.1 ? 0 : 1) };
    fixture.batch(node, [{ ...registerCommand(node, random.fraction() < 0.1 ? 7 : lastEpoch), commandVersion: COMMAND_VERSION }], 0);
  }

  #command(proposer: RegistrationEntry): Command {
    const { random, fixture } = this;
    const streamId = this.#streamId();
    const makers: (() => Command)[] = [
      () => this.#create(proposer),
      () => this.#create(proposer),
      () => this.#create(proposer),
      () => ({ type: "delete_stream", streamId }),
      () => ({ type: "expire_stream", streamId, deadlineMs: fixture.atMs - random.below(100) }),
      () => ({ type: "trim_stream", streamId, startOffset: random.below(50) }),
      () => ({ type: "acquire_stream", streamId }),
      () => ({ type: "acquire_stream", streamId }),
      () => ({
        type: "release_stream",
        streamId,
        deadlineMs: random.fraction() < 0.5 ? null : fixture.atMs + 3000,
        walNumber: random.below(5),
      }),
      () => ({ type: "store_deadlines", deadlines: [{ streamId, deadlineMs: fixture.atMs + random.below(9000) }] }),
      () => ({ type: "start_transfer", streamId, toNodeId: random.below(NODES), deadlineMs: fixture.atMs + random.below(15_000) }),
      () => ({ type: "start_transfer", streamId, toNodeId: random.below(NODES), deadlineMs: fixture.atMs + random.below(15_000) }),
      () => ({ type: "finish_transfer", streamId }),
      () => ({
        type: "prepare_objects",
        randoms: ["0123456789abcdef", "fedcba9876543210"],
        expiresAtMs: fixture.atMs + random.below(9000),
      }),
      () => this.#commit(proposer),
      () => this.#commit(proposer),
      () => this.#compact(proposer),
      () => ({ type: "destroy_objects", objectIds: this.#objectIds(["prepared", "live"]) }),
      () => ({ type: "remove_objects", objectIds: this.#objectIds(["destroyed"]) }),
      () => this.#endOrFence(proposer),
      () => this.#endOrFence(proposer),
      () => ({ type: "resize", nodeId: random.below(NODES), slots: random.below(9) }),
      () => ({ type: "remove_node", nodeId: random.below(NODES) }),
      () => ({ type: "reserve_ids" }),
      () => ({ type: "hold_removal", untilMs: random.fraction() < 0.5 ? null : fixture.atMs + random.below(9000) }),
      () => ({ type: "raise_ids", nextStreamId: random.below(9_000_000), nextObjectId: random.below(500) }),
    ];
    return random.pick(makers)();
  }

  #create(proposer: RegistrationEntry): Command {
    const { random, fixture } = this;
    this.#names += 1;
    const block = random.pick(proposer.streamIdBlocks);
    const isFork = random.fraction() < 0.5;
    const sourceId = this.#streamId();
    return {
      type: "create_stream",
      streamId: block + this.#names,
      name: `s/${random.below(4)}/${random.fraction() < 0.1 ? random.below(this.#names) : this.#names}`,
      settings: this.#settings(),
      isClosed: random.fraction() < 0.1,
      fork: isFork
        ? { sourceId, sourceName: fixture.state.streamById(sourceId)?.name ?? "", offset: 40, requestedOffset: null, requestedSubOffset: 0 }
        : null,
    };
  }

  #settings(): StreamSettings {
    const { random, fixture } = this;
    const kind = random.below(4);
    return {
      contentType: "text/plain",
      ttlSeconds: kind === 1 ? BigInt(random.below(10)) : null,
      expiresAtMs: kind === 2 ? fixture.atMs + random.below(9000) : null,
    };
  }

  #commit(proposer: RegistrationEntry): Command {
    const { random } = this;
    const fenced = [...this.fixture.state.registrations()].filter((entry) => entry.state === "fenced");
    const wal = fenced.length > 0 && random.fraction() < 0.5 ? random.pick(fenced) : proposer;
    const mine = this.#objects().filter((entry) => entry.state === "prepared" && entry.preparedBy.nodeId === proposer.name.nodeId);
    return {
      type: "commit",
      wal: wal.name,
      from: wal.committedNumber,
      to: wal.committedNumber + random.below(4),
      objects: mine.slice(0, random.below(3)).map((entry) => this.#summary(entry.objectId, 0)),
      closedStreams: random.fraction() < 0.2 ? [this.#streamId()] : [],
    };
  }

  #compact(proposer: RegistrationEntry): Command {
    const mine = this.#objects().filter((entry) => entry.state === "prepared" && entry.preparedBy.nodeId === proposer.name.nodeId);
    return {
      type: "compact",
      inputs: this.#objectIds(["live"]),
      outputs: mine.slice(0, 1).map((entry) => this.#summary(entry.objectId, 1)),
    };
  }

  #endOrFence(proposer: RegistrationEntry): Command {
    const { random } = this;
    const victim = random.pick([...this.fixture.state.registrations()]);
    if (victim.state === "live" && random.fraction() < 0.3) return { type: "fence", victim: victim.name };
    const heir = random.fraction() < 0.5 ? proposer.name : null;
    return { type: "end", victim: victim.name, lastNumber: victim.committedNumber, heir };
  }

  #streamId(): number {
    const ids = [...this.fixture.state.streams()].map((entry) => entry.streamId);
    return ids.length === 0 || this.random.fraction() < 0.02 ? 999_999_999 : this.random.pick(ids);
  }

  #objects(): ObjectEntry[] {
    return [...this.fixture.state.objects()];
  }

  #objectIds(states: readonly ObjectEntry["state"][]): number[] {
    const ids = this.#objects()
      .filter((entry) => states.includes(entry.state))
      .map((entry) => entry.objectId);
    return ids.slice(0, 1 + this.random.below(2));
  }

  #summary(objectId: number, level: number): ObjectSummary {
    const first = 1 + this.random.below(50);
    const last = first + this.random.below(50);
    return {
      objectId,
      level,
      sizeBytes: 1,
      streamCount: 1,
      recordCount: 1,
      first: { streamId: first, offset: this.random.below(9) },
      last: { streamId: last, offset: 10 + this.random.below(9) },
    };
  }
}

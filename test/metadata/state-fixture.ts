/** A state under test: applies single commands as rows of a log that this fixture numbers, and keeps the rows. */
import { formatRegistration, type RegistrationName } from "../../src/lib/registration.ts";
import { apply, type CommandRow } from "../../src/metadata/apply.ts";
import type { Command, ObjectSummary, Outcome, StreamSettings } from "../../src/metadata/command.ts";
import { decodeBatch, encodeBatch, encodeCommand } from "../../src/metadata/command-format.ts";
import type { StreamEntry } from "../../src/metadata/entries.ts";
import { MetadataState } from "../../src/metadata/state.ts";

export const START_MS = 1_700_000_000_000;
export const PLAIN: StreamSettings = { contentType: "text/plain", ttlSeconds: null, expiresAtMs: null };

export function nodeName(nodeId: number, nodeEpoch = 1): RegistrationName {
  return { nodeId, nodeEpoch };
}

export function registerCommand(node: RegistrationName, replaces: number | null = null): Command & { type: "register" } {
  return {
    type: "register",
    node,
    addresses: { pico: "http://127.0.0.1:1", durableStreams: null, admin: null },
    wal: { kind: "object", description: "memory" },
    slots: 1,
    failoverTimeoutMs: 5000,
    commandVersion: 1,
    replaces,
  };
}

export function summaryOf(objectId: number, firstId = 1, lastId = 1, level = 0): ObjectSummary {
  return {
    objectId,
    level,
    sizeBytes: 100,
    streamCount: 1,
    recordCount: 1,
    first: { streamId: firstId, offset: 0 },
    last: { streamId: lastId, offset: 9 },
  };
}

/** `applied`, or the refusal's code. */
export function verdict(outcome: Outcome): string {
  return outcome.applied ? "applied" : outcome.code;
}

export class StateFixture {
  readonly rows: CommandRow[] = [];
  atMs = START_MS;
  readonly #batches = new Map<string, number>();

  constructor(readonly state = new MetadataState()) {}

  /** Applies a row that holds `commands`, as it comes out of its stored form. */
  batch(proposer: RegistrationName, commands: readonly Command[], batch = this.#nextBatch(proposer, commands)): readonly Outcome[] {
    const decoded = decodeBatch(encodeBatch(commands.map(encodeCommand)), "test row");
    const index = this.state.appliedIndex + 1;
    const row = { index, atMs: this.atMs, rowId: index.toString(16).padStart(32, "0"), proposer, batch, ...decoded };
    this.rows.push(row);
    return apply(this.state, row);
  }

  run(proposer: RegistrationName, command: Command): Outcome {
    const [outcome] = this.batch(proposer, [command]);
    if (outcome === undefined) throw new Error("no outcome");
    return outcome;
  }

  /** Registers a node; its first stream id is `firstStreamId`. */
  register(node: RegistrationName, replaces: number | null = null): { readonly node: RegistrationName; readonly firstStreamId: number } {
    const outcome = this.run(node, registerCommand(node, replaces));
    if (!outcome.applied) throw new Error(`register refused: ${outcome.code}`);
    return { node, firstStreamId: outcome.facts.firstStreamId ?? 0 };
  }

  create(owner: RegistrationName, streamId: number, name: string, settings = PLAIN): StreamEntry {
    const outcome = this.run(owner, { type: "create_stream", streamId, name, settings, isClosed: false, fork: null });
    if (!outcome.applied) throw new Error(`create refused: ${outcome.code}`);
    return this.stream(streamId);
  }

  fork(owner: RegistrationName, streamId: number, sourceId: number, offset = 0): Outcome {
    const fork = { sourceId, sourceName: "source", offset, requestedOffset: null, requestedSubOffset: 0 };
    return this.run(owner, { type: "create_stream", streamId, name: `fork-${streamId}`, settings: PLAIN, isClosed: false, fork });
  }

  stream(streamId: number): StreamEntry {
    const entry = this.state.streamById(streamId);
    if (entry === null) throw new Error(`no stream ${streamId}`);
    return entry;
  }

  /** Prepares `count` objects and returns their ids. */
  prepare(proposer: RegistrationName, count: number, expiresAtMs = this.atMs + 60_000): number[] {
    const randoms = Array.from({ length: count }, (_, i) => i.toString(16).padStart(16, "0"));
    const outcome = this.run(proposer, { type: "prepare_objects", randoms, expiresAtMs });
    const first = outcome.facts.firstObjectId ?? 0;
    return randoms.map((_, i) => first + i);
  }

  #nextBatch(proposer: RegistrationName, commands: readonly Command[]): number {
    const key = formatRegistration(proposer);
    const batch = commands[0]?.type === "register" ? 0 : (this.#batches.get(key) ?? 0);
    this.#batches.set(key, batch + 1);
    return batch;
  }
}

/**
 * The entries of the metadata state. Each is an immutable value that apply replaces on change, so what a
 * reader holds never changes under it. Their stored form: `state-format.ts`, one snapshot row each.
 */
import type { RegistrationName } from "../lib/registration.ts";
import type { Addresses, ForkOrigin, ObjectSummary, Outcome, StreamSettings, WalLocation } from "./command.ts";

export interface StreamEntry {
  /** Unique for ever; a recreated name gets another. */
  readonly streamId: number;
  readonly name: string;
  readonly settings: StreamSettings;
  readonly createdAtMs: number;
  /** Rises with each change of owner, from 1. */
  readonly streamEpoch: number;
  /** As stored: the registration that acquired it, maybe ended since. Ask `View.ownerOf` for today's owner. Null: released. */
  readonly owner: RegistrationName | null;
  /** Stored deadline (TTL streams): a lower bound of the owner's own. Null without TTL or while never stored. */
  readonly deadlineMs: number | null;
  /** Trim point. Never falls. */
  readonly startOffset: number;
  /** As of the last commit; the owner knows better. For lists. */
  readonly isClosed: boolean;
  readonly fork: ForkOrigin | null;
  /** Forks that still need this stream's records, deleted ones that are kept included. */
  readonly forkCount: number;
  /** Deleted, but kept until `forkCount` is 0. Its name is taken (`gone`). */
  readonly isDeleted: boolean;
  readonly transfer: { readonly toNodeId: number; readonly deadlineMs: number } | null;
}

export interface RegistrationEntry {
  readonly name: RegistrationName;
  readonly state: "live" | "fenced" | "ended";
  readonly addresses: Addresses;
  readonly wal: WalLocation;
  readonly slots: number;
  readonly failoverTimeoutMs: number;
  readonly commandVersion: number;
  readonly registeredAtMs: number;
  /** WAL position up to which everything is in data objects (0: nothing yet). */
  readonly committedNumber: number;
  /** `committedNumber` when the fence was applied: every recoverer replays from here. Null while live. */
  readonly fencedNumber: number | null;
  readonly endedAtMs: number | null;
  /** First ids of the blocks of `STREAM_IDS_PER_RESERVATION` stream ids that it may create streams with, ascending. */
  readonly streamIdBlocks: readonly number[];
  /** Owns its streams since the end; null: nobody does. */
  readonly heir: RegistrationName | null;
  /** Number of its last applied batch and what became of it, so that a repeat is answered alike. */
  readonly lastBatch: number;
  readonly lastOutcomes: readonly Outcome[];
}

/** A node id: survives its registrations, so that epochs never go back. */
export interface NodeEntry {
  readonly nodeId: number;
  readonly lastEpoch: number;
  readonly slots: number;
  /** Removed by an operator. The entry stays for its epoch; registering again brings the node back. */
  readonly isRemoved: boolean;
}

export interface ObjectEntry {
  readonly objectId: number;
  /** 16 hex digits. */
  readonly random: string;
  /** `destroyed`: replaced by a compaction, or given up; may leave the store later. */
  readonly state: "prepared" | "live" | "destroyed";
  readonly preparedBy: RegistrationName;
  readonly preparedUntilMs: number;
  /** Null while prepared. */
  readonly summary: ObjectSummary | null;
  /** Index of the command that made it live; null while prepared, and if it never was. */
  readonly liveIndex: number | null;
  /** Index of the command that destroyed it, and that row's time. */
  readonly destroyedIndex: number | null;
  readonly destroyedAtMs: number | null;
}

/** Of the store keys of all data objects. */
export function objectPrefix(clusterId: string): string {
  return `${clusterId}/data/`;
}

/** Store key of a data object: `<cluster>/data/<random>/<object id>`. */
export function objectKey(clusterId: string, entry: { readonly random: string; readonly objectId: number }): string {
  return `${objectPrefix(clusterId)}${entry.random}/${entry.objectId}`;
}

/** Null for a key that `objectKey` does not make. */
export function parseObjectKey(clusterId: string, key: string): { readonly random: string; readonly objectId: number } | null {
  const [, random = "", digits] = /^([0-9a-f]{16})\/(\d{1,16})$/.exec(key.slice(objectPrefix(clusterId).length)) ?? [];
  const named = { random, objectId: Number(digits) };
  return Number.isSafeInteger(named.objectId) && objectKey(clusterId, named) === key ? named : null;
}

/**
 * The state as snapshot rows: one entry a row, key and value.
 *
 * | key | value, after u8 row version |
 * | --- | --- |
 * | `c` | counters |
 * | `n<node id>` | node |
 * | `r<node id>@<node epoch>` | registration |
 * | `s<stream id>` | stream |
 * | `o<object id>` | data object |
 *
 * What the key says is not repeated in the value. Field order is that of the functions below; shared
 * fields and permanent codes are in `field-format.ts`. A row version or key letter that this program
 * does not know throws `incompatible`.
 */
import { unreachable } from "../lib/assert.ts";
import { ByteReader, ByteWriter } from "../lib/bytes.ts";
import { PicoError } from "../lib/errors.ts";
import { formatRegistration, type RegistrationName } from "../lib/registration.ts";
import type { NodeEntry, ObjectEntry, RegistrationEntry, StreamEntry } from "./entries.ts";
import {
  invert,
  memberOf,
  readAddresses,
  readFlag,
  readFork,
  readList,
  readNumber,
  readOptional,
  readOutcome,
  readRegistration,
  readSettings,
  readSummary,
  readWalLocation,
  writeAddresses,
  writeFlag,
  writeFork,
  writeList,
  writeNumber,
  writeOptional,
  writeOutcome,
  writeRegistration,
  writeSettings,
  writeSummary,
  writeWalLocation,
} from "./field-format.ts";

/** The newest version of each kind of row. A row is written in the lowest version that holds it. */
const ROW_VERSIONS: Readonly<Record<StateRow["kind"], number>> = { counters: 2, node: 1, registration: 1, stream: 1, object: 1 };

/** What the state holds once. */
export interface Counters {
  /** First id of the next block of stream ids. */
  readonly nextStreamId: number;
  readonly nextObjectId: number;
  /** Highest command version found in the log: a program that speaks less must not register any more. */
  readonly commandVersion: number;
  /** Time of the last applied row. */
  readonly appliedAtMs: number;
  /** Nothing leaves the store before this time of the database; null: nothing holds it. In rows of version 2 only. */
  readonly removalHeldUntilMs: number | null;
}

export type StateRow =
  | { readonly kind: "counters"; readonly entry: Counters }
  | { readonly kind: "node"; readonly entry: NodeEntry }
  | { readonly kind: "registration"; readonly entry: RegistrationEntry }
  | { readonly kind: "stream"; readonly entry: StreamEntry }
  | { readonly kind: "object"; readonly entry: ObjectEntry };

/** A row key, taken apart. */
export type RowName =
  | { readonly kind: "counters" }
  | { readonly kind: "node" | "stream" | "object"; readonly id: number }
  | { readonly kind: "registration"; readonly name: RegistrationName };

export const COUNTERS_KEY = "c";
export const nodeKey = (nodeId: number): string => `n${nodeId}`;
export const registrationKey = (name: RegistrationName): string => `r${formatRegistration(name)}`;
export const streamKey = (streamId: number): string => `s${streamId}`;
export const objectRowKey = (objectId: number): string => `o${objectId}`;

const REGISTRATION_STATE_NUMBERS: Readonly<Record<RegistrationEntry["state"], number>> = { live: 1, fenced: 2, ended: 3 };
const REGISTRATION_STATES = invert(REGISTRATION_STATE_NUMBERS);
const OBJECT_STATE_NUMBERS: Readonly<Record<ObjectEntry["state"], number>> = { prepared: 1, live: 2, destroyed: 3 };
const OBJECT_STATES = invert(OBJECT_STATE_NUMBERS);

export function encodeRowValue(row: StateRow): Uint8Array {
  const writer = new ByteWriter(128);
  // The lowest that holds it, the same on all nodes: an older program goes on reading what it knows.
  const version = row.kind === "counters" && row.entry.removalHeldUntilMs !== null ? 2 : 1;
  writer.u8(version);
  switch (row.kind) {
    case "counters":
      writeCounters(writer, row.entry);
      if (version >= 2) writeOptional(writer, row.entry.removalHeldUntilMs, writeNumber);
      break;
    case "node":
      writer.varint(row.entry.lastEpoch);
      writer.varint(row.entry.slots);
      writeFlag(writer, row.entry.isRemoved);
      break;
    case "registration":
      writeRegistrationEntry(writer, row.entry);
      break;
    case "stream":
      writeStreamEntry(writer, row.entry);
      break;
    case "object":
      writeObjectEntry(writer, row.entry);
      break;
    default:
      unreachable(row);
  }
  return writer.copy();
}

/** Throws `incompatible` or `corrupt`, naming the row. */
export function decodeRow(key: string, value: Uint8Array): StateRow {
  const name = parseRowKey(key);
  const reader = new ByteReader(value, 0, value.length, `metadata row ${key}`);
  const version = reader.u8();
  const versionMax = ROW_VERSIONS[name.kind];
  if (version === 0 || version > versionMax) {
    throw new PicoError(
      "incompatible",
      `metadata row ${key} has version ${version}, this program reads up to ${versionMax}; run a newer one`,
      { version },
    );
  }
  const row = readRow(reader, name, version);
  reader.expectEnd();
  return row;
}

function readRow(reader: ByteReader, name: RowName, version: number): StateRow {
  switch (name.kind) {
    case "counters":
      return { kind: "counters", entry: readCounters(reader, version) };
    case "node":
      return { kind: "node", entry: { nodeId: name.id, lastEpoch: reader.varint(), slots: reader.varint(), isRemoved: readFlag(reader) } };
    case "registration":
      return { kind: "registration", entry: readRegistrationEntry(reader, name.name) };
    case "stream":
      return { kind: "stream", entry: readStreamEntry(reader, name.id) };
    case "object":
      return { kind: "object", entry: readObjectEntry(reader, name.id) };
    default:
      return unreachable(name);
  }
}

const KEY_FORM = /^(?:c|([nso])(-?\d{1,16})|r(-?\d{1,10})@(\d{1,16}))$/;

/** Throws `incompatible` for a key that this program does not write. */
export function parseRowKey(key: string): RowName {
  const match = KEY_FORM.exec(key);
  if (match === null) {
    throw new PicoError(
      "incompatible",
      `metadata row ${JSON.stringify(key)} is of a kind that this program does not know; run a newer one`,
      {
        key,
      },
    );
  }
  const [, letter, id, nodeId, nodeEpoch] = match;
  if (letter === undefined) {
    if (nodeId === undefined) return { kind: "counters" };
    return { kind: "registration", name: { nodeId: Number(nodeId), nodeEpoch: Number(nodeEpoch) } };
  }
  return { kind: letter === "n" ? "node" : letter === "s" ? "stream" : "object", id: Number(id) };
}

function writeCounters(writer: ByteWriter, counters: Counters): void {
  writer.varint(counters.nextStreamId);
  writer.varint(counters.nextObjectId);
  writer.varint(counters.commandVersion);
  writer.varint(counters.appliedAtMs);
}

function readCounters(reader: ByteReader, version: number): Counters {
  return {
    nextStreamId: reader.varint(),
    nextObjectId: reader.varint(),
    commandVersion: reader.varint(),
    appliedAtMs: reader.varint(),
    removalHeldUntilMs: version >= 2 ? readOptional(reader, readNumber) : null,
  };
}

function writeRegistrationEntry(writer: ByteWriter, entry: RegistrationEntry): void {
  writer.u8(REGISTRATION_STATE_NUMBERS[entry.state]);
  writeAddresses(writer, entry.addresses);
  writeWalLocation(writer, entry.wal);
  writer.varint(entry.slots);
  writer.varint(entry.failoverTimeoutMs);
  writer.varint(entry.commandVersion);
  writer.varint(entry.registeredAtMs);
  writer.varint(entry.committedNumber);
  writeOptional(writer, entry.fencedNumber, writeNumber);
  writeOptional(writer, entry.endedAtMs, writeNumber);
  writeList(writer, entry.streamIdBlocks, writeNumber);
  writeOptional(writer, entry.heir, writeRegistration);
  writer.varint(entry.lastBatch);
  writeList(writer, entry.lastOutcomes, writeOutcome);
}

function readRegistrationEntry(reader: ByteReader, name: RegistrationName): RegistrationEntry {
  return {
    name,
    state: memberOf(REGISTRATION_STATES, reader.u8(), "registration state"),
    addresses: readAddresses(reader),
    wal: readWalLocation(reader),
    slots: reader.varint(),
    failoverTimeoutMs: reader.varint(),
    commandVersion: reader.varint(),
    registeredAtMs: reader.varint(),
    committedNumber: reader.varint(),
    fencedNumber: readOptional(reader, readNumber),
    endedAtMs: readOptional(reader, readNumber),
    streamIdBlocks: readList(reader, readNumber),
    heir: readOptional(reader, readRegistration),
    lastBatch: reader.varint(),
    lastOutcomes: readList(reader, readOutcome),
  };
}

function writeStreamEntry(writer: ByteWriter, entry: StreamEntry): void {
  writer.text(entry.name);
  writeSettings(writer, entry.settings);
  writer.varint(entry.createdAtMs);
  writer.varint(entry.streamEpoch);
  writeOptional(writer, entry.owner, writeRegistration);
  writeOptional(writer, entry.deadlineMs, writeNumber);
  writer.varint(entry.startOffset);
  writeFlag(writer, entry.isClosed);
  writeOptional(writer, entry.fork, writeFork);
  writer.varint(entry.forkCount);
  writeFlag(writer, entry.isDeleted);
  writeOptional(writer, entry.transfer, (target, transfer) => {
    target.i32(transfer.toNodeId);
    target.varint(transfer.deadlineMs);
  });
}

function readStreamEntry(reader: ByteReader, streamId: number): StreamEntry {
  return {
    streamId,
    name: reader.text(),
    settings: readSettings(reader),
    createdAtMs: reader.varint(),
    streamEpoch: reader.varint(),
    owner: readOptional(reader, readRegistration),
    deadlineMs: readOptional(reader, readNumber),
    startOffset: reader.varint(),
    isClosed: readFlag(reader),
    fork: readOptional(reader, readFork),
    forkCount: reader.varint(),
    isDeleted: readFlag(reader),
    transfer: readOptional(reader, (source) => ({ toNodeId: source.i32(), deadlineMs: source.varint() })),
  };
}

function writeObjectEntry(writer: ByteWriter, entry: ObjectEntry): void {
  writer.text(entry.random);
  writer.u8(OBJECT_STATE_NUMBERS[entry.state]);
  writeRegistration(writer, entry.preparedBy);
  writer.varint(entry.preparedUntilMs);
  writeOptional(writer, entry.summary, writeSummary);
  writeOptional(writer, entry.liveIndex, writeNumber);
  writeOptional(writer, entry.destroyedIndex, writeNumber);
  writeOptional(writer, entry.destroyedAtMs, writeNumber);
}

function readObjectEntry(reader: ByteReader, objectId: number): ObjectEntry {
  return {
    objectId,
    random: reader.text(),
    state: memberOf(OBJECT_STATES, reader.u8(), "object state"),
    preparedBy: readRegistration(reader),
    preparedUntilMs: reader.varint(),
    summary: readOptional(reader, readSummary),
    liveIndex: readOptional(reader, readNumber),
    destroyedIndex: readOptional(reader, readNumber),
    destroyedAtMs: readOptional(reader, readNumber),
  };
}

/**
 * The fields that commands and state entries share, as bytes. Every number here is permanent: a code is
 * never reused or renumbered, and a change of layout is a new version of the format that uses it.
 *
 * | field | layout |
 * | --- | --- |
 * | number | varint |
 * | optional | u8 0 (absent) or 1, then the value |
 * | registration | i32 node id, varint epoch |
 * | flag | u8 0 or 1 |
 */
import type { ByteReader, ByteWriter } from "../lib/bytes.ts";
import { PicoError } from "../lib/errors.ts";
import type { RegistrationName } from "../lib/registration.ts";
import type { Addresses, ForkOrigin, ObjectSummary, Outcome, RefusalCode, StreamSettings, WalLocation } from "./command.ts";

const WAL_KIND_NUMBERS: Readonly<Record<WalLocation["kind"], number>> = { local: 1, object: 2, postgres: 3 };
const WAL_KINDS = invert(WAL_KIND_NUMBERS);

const REFUSAL_NUMBERS: Readonly<Record<RefusalCode, number>> = {
  proposer_dead: 1,
  epoch_conflict: 2,
  unknown_registration: 3,
  already_fenced: 4,
  not_fenced: 5,
  already_ended: 6,
  wal_position: 7,
  name_taken: 8,
  id_taken: 9,
  unknown_stream: 10,
  not_owner: 11,
  owned: 12,
  owner_in_recovery: 13,
  not_due: 14,
  expired: 15,
  transfer_pending: 16,
  no_transfer: 17,
  unknown_node: 18,
  node_alive: 19,
  unknown_object: 20,
  object_state: 21,
  fork_source: 22,
  stale_version: 23,
  batch_order: 24,
};
const REFUSALS = invert(REFUSAL_NUMBERS);

/** The member of a closed set behind its number; an unknown one was stored by a newer program. */
export function memberOf<T extends string>(members: ReadonlyMap<number, T>, number: number, what: string): T {
  const member = members.get(number);
  if (member === undefined) {
    throw new PicoError("incompatible", `${what} ${number} is not known to this version of the program; run a newer one`, { what, number });
  }
  return member;
}

export function invert<T extends string>(numbers: Readonly<Record<T, number>>): ReadonlyMap<number, T> {
  return new Map((Object.entries(numbers) as [T, number][]).map(([member, number]) => [number, member]));
}

export function writeFlag(writer: ByteWriter, flag: boolean): void {
  writer.u8(flag ? 1 : 0);
}

export function readFlag(reader: ByteReader): boolean {
  const byte = reader.u8();
  if (byte > 1) throw new PicoError("corrupt", `${reader.what}: flag ${byte} at byte ${reader.at - 1}`, { where: reader.what });
  return byte === 1;
}

export function writeOptional<T>(writer: ByteWriter, value: T | null, write: (writer: ByteWriter, value: T) => void): void {
  writeFlag(writer, value !== null);
  if (value !== null) write(writer, value);
}

export function readOptional<T>(reader: ByteReader, read: (reader: ByteReader) => T): T | null {
  return readFlag(reader) ? read(reader) : null;
}

export function writeList<T>(writer: ByteWriter, values: readonly T[], write: (writer: ByteWriter, value: T) => void): void {
  writer.varint(values.length);
  for (const value of values) write(writer, value);
}

export function readList<T>(reader: ByteReader, read: (reader: ByteReader) => T): T[] {
  const count = reader.varint();
  // Each element takes a byte at least, so a damaged count cannot ask for more memory than there are bytes.
  if (count > reader.remaining) {
    throw new PicoError("corrupt", `${reader.what}: list of ${count} in ${reader.remaining} bytes`, { where: reader.what });
  }
  const values: T[] = [];
  for (let i = 0; i < count; i++) values.push(read(reader));
  return values;
}

export const writeNumber = (writer: ByteWriter, value: number): void => writer.varint(value);
export const readNumber = (reader: ByteReader): number => reader.varint();
export const writeText = (writer: ByteWriter, value: string): void => writer.text(value);
export const readText = (reader: ByteReader): string => reader.text();

export function writeRegistration(writer: ByteWriter, name: RegistrationName): void {
  writer.i32(name.nodeId);
  writer.varint(name.nodeEpoch);
}

export function readRegistration(reader: ByteReader): RegistrationName {
  return { nodeId: reader.i32(), nodeEpoch: reader.varint() };
}

export function writeAddresses(writer: ByteWriter, addresses: Addresses): void {
  writeOptional(writer, addresses.pico, writeText);
  writeOptional(writer, addresses.durableStreams, writeText);
  writeOptional(writer, addresses.admin, writeText);
}

export function readAddresses(reader: ByteReader): Addresses {
  return { pico: readOptional(reader, readText), durableStreams: readOptional(reader, readText), admin: readOptional(reader, readText) };
}

export function writeWalLocation(writer: ByteWriter, wal: WalLocation): void {
  writer.u8(WAL_KIND_NUMBERS[wal.kind]);
  writer.text(wal.description);
}

export function readWalLocation(reader: ByteReader): WalLocation {
  return { kind: memberOf(WAL_KINDS, reader.u8(), "WAL kind"), description: reader.text() };
}

export function writeSettings(writer: ByteWriter, settings: StreamSettings): void {
  writer.text(settings.contentType);
  writeOptional(writer, settings.ttlSeconds, (target, seconds) => target.bigU64(seconds));
  writeOptional(writer, settings.expiresAtMs, writeNumber);
}

export function readSettings(reader: ByteReader): StreamSettings {
  return {
    contentType: reader.text(),
    ttlSeconds: readOptional(reader, (source) => source.bigU64()),
    expiresAtMs: readOptional(reader, readNumber),
  };
}

export function writeFork(writer: ByteWriter, fork: ForkOrigin): void {
  writer.varint(fork.sourceId);
  writer.text(fork.sourceName);
  writer.varint(fork.offset);
  writeOptional(writer, fork.requestedOffset, writeNumber);
  writer.varint(fork.requestedSubOffset);
}

export function readFork(reader: ByteReader): ForkOrigin {
  return {
    sourceId: reader.varint(),
    sourceName: reader.text(),
    offset: reader.varint(),
    requestedOffset: readOptional(reader, readNumber),
    requestedSubOffset: reader.varint(),
  };
}

export function writeSummary(writer: ByteWriter, summary: ObjectSummary): void {
  writer.varint(summary.objectId);
  writer.u8(summary.level);
  writer.varint(summary.sizeBytes);
  writer.varint(summary.streamCount);
  writer.varint(summary.recordCount);
  for (const place of [summary.first, summary.last]) {
    writer.varint(place.streamId);
    writer.varint(place.offset);
  }
}

export function readSummary(reader: ByteReader): ObjectSummary {
  return {
    objectId: reader.varint(),
    level: reader.u8(),
    sizeBytes: reader.varint(),
    streamCount: reader.varint(),
    recordCount: reader.varint(),
    first: { streamId: reader.varint(), offset: reader.varint() },
    last: { streamId: reader.varint(), offset: reader.varint() },
  };
}

/** Outcome: u8 0 (applied) or the refusal's number; then the facts, sorted by name, as a list of (text, number). */
export function writeOutcome(writer: ByteWriter, outcome: Outcome): void {
  writer.u8(outcome.applied ? 0 : REFUSAL_NUMBERS[outcome.code]);
  const facts = Object.entries(outcome.facts).sort(([left], [right]) => (left < right ? -1 : 1));
  writeList(writer, facts, (target, [name, value]) => {
    target.text(name);
    target.varint(value);
  });
}

export function readOutcome(reader: ByteReader): Outcome {
  const number = reader.u8();
  const facts = Object.fromEntries(readList(reader, (source): [string, number] => [source.text(), source.varint()]));
  return number === 0 ? { applied: true, facts } : { applied: false, code: memberOf(REFUSALS, number, "refusal"), facts };
}

/**
 * A batch of commands as the bytes of one log row.
 *
 * | bytes | what |
 * | --- | --- |
 * | u8 | command version that the batch needs: that of its newest command |
 * | varint | number of commands |
 * | ... | each command: u8 type number, then its fields (`field-format.ts`) in the order written below |
 * | u64 | checksum (`lib/checksum.ts`) of all before |
 *
 * Type numbers are permanent. A type that this program does not know throws `incompatible`: to skip it
 * would make this node's state differ from the others', so the node stops instead.
 */
import { unreachable } from "../lib/assert.ts";
import { ByteReader, ByteWriter } from "../lib/bytes.ts";
import { CHECKSUM_BYTES, checksum64 } from "../lib/checksum.ts";
import { PicoError } from "../lib/errors.ts";
import type { Command } from "./command.ts";
import {
  invert,
  memberOf,
  readAddresses,
  readFlag,
  readFork,
  readList,
  readNumber,
  readOptional,
  readRegistration,
  readSettings,
  readSummary,
  readText,
  readWalLocation,
  writeAddresses,
  writeFlag,
  writeFork,
  writeList,
  writeNumber,
  writeOptional,
  writeRegistration,
  writeSettings,
  writeSummary,
  writeText,
  writeWalLocation,
} from "./field-format.ts";

/** The newest command version that this program reads and writes. */
export const COMMAND_VERSION = 2;

/** The version that a program must speak to read a command; 1 where none is named. */
const VERSIONS: Partial<Readonly<Record<Command["type"], number>>> = { hold_removal: 2, raise_ids: 2 };

const TYPE_NUMBERS: Readonly<Record<Command["type"], number>> = {
  register: 1,
  fence: 2,
  end: 3,
  resize: 4,
  remove_node: 5,
  reserve_ids: 6,
  hold_removal: 7,
  raise_ids: 8,
  create_stream: 16,
  delete_stream: 17,
  expire_stream: 18,
  trim_stream: 19,
  acquire_stream: 20,
  release_stream: 21,
  store_deadlines: 22,
  start_transfer: 23,
  finish_transfer: 24,
  prepare_objects: 32,
  commit: 33,
  compact: 34,
  destroy_objects: 35,
  remove_objects: 36,
};
const TYPES = invert(TYPE_NUMBERS);

/** Bytes of a batch beyond those of its commands, at most. */
export const BATCH_OVERHEAD_BYTES = 1 + 8 + CHECKSUM_BYTES;

export interface CommandBatch {
  readonly version: number;
  readonly commands: readonly Command[];
}

/** What every live node must speak before the command is proposed (FAULTS U1). */
export function commandVersionOf(type: Command["type"]): number {
  return VERSIONS[type] ?? 1;
}

/** One command, as `encodeBatch` joins them. */
export function encodeCommand(command: Command): Uint8Array {
  const writer = new ByteWriter(128);
  writer.u8(TYPE_NUMBERS[command.type]);
  writeFields(writer, command);
  return writer.copy();
}

/** The payload of a log row from commands that `encodeCommand` made. */
export function encodeBatch(encoded: readonly Uint8Array[]): Uint8Array {
  const writer = new ByteWriter(1024);
  writer.u8(encoded.reduce((version, command) => Math.max(version, versionOfEncoded(command)), 1));
  writer.varint(encoded.length);
  for (const command of encoded) writer.bytes(command);
  writer.bigU64(checksum64(writer.written()));
  return writer.copy();
}

/** Throws `incompatible` (newer version or type) or `corrupt`; `what` names the row in both. */
export function decodeBatch(payload: Uint8Array, what: string): CommandBatch {
  const reader = new ByteReader(payload, 0, Math.max(0, payload.length - CHECKSUM_BYTES), what);
  const stored = new ByteReader(payload, reader.end, payload.length, what).bigU64();
  if (stored !== checksum64(payload.subarray(0, reader.end))) {
    throw new PicoError("corrupt", `${what}: checksum does not match; the database is damaged`, { where: what });
  }
  const version = reader.u8();
  if (version === 0 || version > COMMAND_VERSION) {
    throw new PicoError(
      "incompatible",
      `${what}: command version ${version}, this program reads up to ${COMMAND_VERSION}; run a newer one`,
      {
        version,
      },
    );
  }
  const commands = readList(reader, (source) => readFields(source, memberOf(TYPES, source.u8(), `${what}: command type`)));
  reader.expectEnd();
  return { version, commands };
}

function versionOfEncoded(command: Uint8Array): number {
  return commandVersionOf(memberOf(TYPES, command[0] ?? 0, "a command that was just encoded"));
}

function writeFields(writer: ByteWriter, command: Command): void {
  switch (command.type) {
    case "register":
      writeRegistration(writer, command.node);
      writeAddresses(writer, command.addresses);
      writeWalLocation(writer, command.wal);
      writer.varint(command.slots);
      writer.varint(command.failoverTimeoutMs);
      writer.varint(command.commandVersion);
      writeOptional(writer, command.replaces, writeNumber);
      return;
    case "fence":
      writeRegistration(writer, command.victim);
      return;
    case "end":
      writeRegistration(writer, command.victim);
      writer.varint(command.lastNumber);
      writeOptional(writer, command.heir, writeRegistration);
      return;
    case "resize":
      writer.i32(command.nodeId);
      writer.varint(command.slots);
      return;
    case "remove_node":
      writer.i32(command.nodeId);
      return;
    case "reserve_ids":
      return;
    case "hold_removal":
      writeOptional(writer, command.untilMs, writeNumber);
      return;
    case "raise_ids":
      writer.varint(command.nextStreamId);
      writer.varint(command.nextObjectId);
      return;
    case "create_stream":
      writer.varint(command.streamId);
      writer.text(command.name);
      writeSettings(writer, command.settings);
      writeFlag(writer, command.isClosed);
      writeOptional(writer, command.fork, writeFork);
      return;
    case "delete_stream":
    case "acquire_stream":
    case "finish_transfer":
      writer.varint(command.streamId);
      return;
    case "expire_stream":
      writer.varint(command.streamId);
      writer.varint(command.deadlineMs);
      return;
    case "trim_stream":
      writer.varint(command.streamId);
      writer.varint(command.startOffset);
      return;
    case "release_stream":
      writer.varint(command.streamId);
      writeOptional(writer, command.deadlineMs, writeNumber);
      writer.varint(command.walNumber);
      return;
    case "store_deadlines":
      writeList(writer, command.deadlines, (target, deadline) => {
        target.varint(deadline.streamId);
        target.varint(deadline.deadlineMs);
      });
      return;
    case "start_transfer":
      writer.varint(command.streamId);
      writer.i32(command.toNodeId);
      writer.varint(command.deadlineMs);
      return;
    case "prepare_objects":
      writeList(writer, command.randoms, writeText);
      writer.varint(command.expiresAtMs);
      return;
    case "commit":
      writeRegistration(writer, command.wal);
      writer.varint(command.from);
      writer.varint(command.to);
      writeList(writer, command.objects, writeSummary);
      writeList(writer, command.closedStreams, writeNumber);
      return;
    case "compact":
      writeList(writer, command.inputs, writeNumber);
      writeList(writer, command.outputs, writeSummary);
      return;
    case "destroy_objects":
    case "remove_objects":
      writeList(writer, command.objectIds, writeNumber);
      return;
    default:
      unreachable(command);
  }
}

function readFields(reader: ByteReader, type: Command["type"]): Command {
  switch (type) {
    case "register":
      return {
        type,
        node: readRegistration(reader),
        addresses: readAddresses(reader),
        wal: readWalLocation(reader),
        slots: reader.varint(),
        failoverTimeoutMs: reader.varint(),
        commandVersion: reader.varint(),
        replaces: readOptional(reader, readNumber),
      };
    case "fence":
      return { type, victim: readRegistration(reader) };
    case "end":
      return { type, victim: readRegistration(reader), lastNumber: reader.varint(), heir: readOptional(reader, readRegistration) };
    case "resize":
      return { type, nodeId: reader.i32(), slots: reader.varint() };
    case "remove_node":
      return { type, nodeId: reader.i32() };
    case "reserve_ids":
      return { type };
    case "hold_removal":
      return { type, untilMs: readOptional(reader, readNumber) };
    case "raise_ids":
      return { type, nextStreamId: reader.varint(), nextObjectId: reader.varint() };
    case "create_stream":
      return {
        type,
        streamId: reader.varint(),
        name: reader.text(),
        settings: readSettings(reader),
        isClosed: readFlag(reader),
        fork: readOptional(reader, readFork),
      };
    case "delete_stream":
    case "acquire_stream":
    case "finish_transfer":
      return { type, streamId: reader.varint() };
    case "expire_stream":
      return { type, streamId: reader.varint(), deadlineMs: reader.varint() };
    case "trim_stream":
      return { type, streamId: reader.varint(), startOffset: reader.varint() };
    case "release_stream":
      return { type, streamId: reader.varint(), deadlineMs: readOptional(reader, readNumber), walNumber: reader.varint() };
    case "store_deadlines":
      return { type, deadlines: readList(reader, (source) => ({ streamId: source.varint(), deadlineMs: source.varint() })) };
    case "start_transfer":
      return { type, streamId: reader.varint(), toNodeId: reader.i32(), deadlineMs: reader.varint() };
    case "prepare_objects":
      return { type, randoms: readList(reader, readText), expiresAtMs: reader.varint() };
    case "commit":
      return {
        type,
        wal: readRegistration(reader),
        from: reader.varint(),
        to: reader.varint(),
        objects: readList(reader, readSummary),
        closedStreams: readList(reader, readNumber),
      };
    case "compact":
      return { type, inputs: readList(reader, readNumber), outputs: readList(reader, readSummary) };
    case "destroy_objects":
    case "remove_objects":
      return { type, objectIds: readList(reader, readNumber) };
    default:
      return unreachable(type);
  }
}

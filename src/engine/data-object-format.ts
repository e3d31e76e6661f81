/**
 * The layout of data objects: the records and tail states of many streams, in the order of stream ids.
 *
 *     "PICODATA"       8 bytes, for whoever looks at the object with other tools
 *     record blocks    the records, in the order of (stream id, offset)
 *     state blocks     the tail state of each stream that ends in this object
 *     leaves           index entries of the record blocks, then of the state blocks
 *     filter           over the stream ids, level 0 only (`bloom-filter.ts`)
 *     top index        one index entry a leaf: first those of record leaves, then those of state leaves
 *     footer
 *
 * A block holds parts of several streams: the parts, then a directory, then u32 the count of parts.
 * A directory entry is u64 stream id, u32 where its part begins in the block; ids rise. A part of a
 * record block is record batches one behind the other, a part of a state block is one tail state.
 *
 * An index entry says where the block (or the leaf) is that begins with a place:
 *
 *     u64 stream id, u64 offset (0 in state blocks), u32 position, u32 length, u64 checksum
 *
 * The footer, from its begin:
 *
 *     u64  object id
 *     u8   level
 *     u32  count of streams         u64  count of records
 *     u64, u64  first place         u64, u64  last place
 *     u32  count of record leaves   u32  count of state leaves
 *     u32  position of the filter   u32  its length   u32  length of the top index
 *     u64  checksum of filter and top index
 *     text cluster id
 *     u16  length of the footer     u16  version, 1   u32  0x5049434f
 *     u64  checksum of the footer's bytes before this one
 *
 * Invariants: every byte that a reader trusts is under a checksum that sits in what it read before:
 * the footer covers filter and top index, they cover the leaves, those cover the blocks. The footer
 * names object and cluster, so a whole but wrong object is recognised, and so is a wrong block.
 */
import { ByteReader, type ByteWriter } from "../lib/bytes.ts";
import { CHECKSUM_BYTES, checksum64 } from "../lib/checksum.ts";
import { PicoError } from "../lib/errors.ts";
import type { RecordPlace } from "../metadata/command.ts";
import { readU32, readU64 } from "./record-batch-view.ts";

export const DATA_OBJECT_MAGIC = "PICODATA";
const DATA_OBJECT_VERSION = 1;
const FOOTER_MAGIC = 0x5049434f;

export const DIRECTORY_ENTRY_BYTES = 12;
export const PART_COUNT_BYTES = 4;
export const INDEX_ENTRY_BYTES = 32;
/** Footer length, version, magic and checksum: their place does not depend on the version. */
const FOOTER_END_BYTES = 16;

/** A run of bytes of an object, and the place that it begins with. */
export interface IndexEntry extends RecordPlace {
  readonly position: number;
  readonly length: number;
  readonly checksum: bigint;
}

export interface DataObjectFooter {
  readonly objectId: number;
  readonly level: number;
  readonly streamCount: number;
  readonly recordCount: number;
  readonly first: RecordPlace;
  readonly last: RecordPlace;
  readonly recordLeafCount: number;
  readonly stateLeafCount: number;
  readonly filterPosition: number;
  /** 0: no filter. */
  readonly filterLength: number;
  readonly topLength: number;
  /** Of filter and top index together. */
  readonly headChecksum: bigint;
  readonly clusterId: string;
}

export function encodeFooter(out: ByteWriter, footer: DataObjectFooter): void {
  const start = out.length;
  out.u64(footer.objectId);
  out.u8(footer.level);
  out.u32(footer.streamCount);
  out.u64(footer.recordCount);
  for (const place of [footer.first, footer.last]) {
    out.u64(place.streamId);
    out.u64(place.offset);
  }
  out.u32(footer.recordLeafCount);
  out.u32(footer.stateLeafCount);
  out.u32(footer.filterPosition);
  out.u32(footer.filterLength);
  out.u32(footer.topLength);
  out.bigU64(footer.headChecksum);
  out.text(footer.clusterId);
  out.u16(out.length - start + FOOTER_END_BYTES);
  out.u16(DATA_OBJECT_VERSION);
  out.u32(FOOTER_MAGIC);
  out.bigU64(checksum64(out.buffer.subarray(start, out.length)));
}

/**
 * Reads the footer that ends with `bytes`, the end of an object that `what` names. Throws `corrupt`
 * for damage, `incompatible` for a version that this program does not read.
 */
export function decodeFooter(bytes: Uint8Array, what: string): { readonly footer: DataObjectFooter; readonly footerLength: number } {
  const reader = new ByteReader(bytes, Math.max(0, bytes.length - FOOTER_END_BYTES), bytes.length, what);
  const footerLength = reader.u16();
  const version = reader.u16();
  const isOurs = reader.u32() === FOOTER_MAGIC && footerLength <= bytes.length && footerLength > FOOTER_END_BYTES;
  const start = bytes.length - footerLength;
  if (!isOurs || reader.bigU64() !== checksum64(bytes.subarray(start, bytes.length - CHECKSUM_BYTES))) {
    throw new PicoError("corrupt", `${what}: the footer is damaged`, { where: what });
  }
  if (version !== DATA_OBJECT_VERSION) {
    const message = `${what}: a data object of version ${version}, this program reads version ${DATA_OBJECT_VERSION}`;
    throw new PicoError("incompatible", message, { where: what, version });
  }
  const fields = new ByteReader(bytes, start, bytes.length - FOOTER_END_BYTES, what);
  const footer: DataObjectFooter = {
    objectId: fields.u64(),
    level: fields.u8(),
    streamCount: fields.u32(),
    recordCount: fields.u64(),
    first: { streamId: fields.u64(), offset: fields.u64() },
    last: { streamId: fields.u64(), offset: fields.u64() },
    recordLeafCount: fields.u32(),
    stateLeafCount: fields.u32(),
    filterPosition: fields.u32(),
    filterLength: fields.u32(),
    topLength: fields.u32(),
    headChecksum: fields.bigU64(),
    clusterId: fields.text(),
  };
  fields.expectEnd();
  return { footer, footerLength };
}

/** Index entries in place: a leaf, or one half of a top index. */
export class IndexEntries {
  constructor(
    private readonly bytes: Uint8Array,
    private readonly start: number,
    readonly count: number,
  ) {}

  static ofLeaf(bytes: Uint8Array): IndexEntries {
    return new IndexEntries(bytes, 0, Math.floor(bytes.length / INDEX_ENTRY_BYTES));
  }

  at(index: number): IndexEntry {
    const reader = new ByteReader(this.bytes, this.start + index * INDEX_ENTRY_BYTES, this.bytes.length, "index entry");
    return { streamId: reader.u64(), offset: reader.u64(), position: reader.u32(), length: reader.u32(), checksum: reader.bigU64() };
  }

  /** The last entry whose place is at or below the one given; -1 where all are above it. */
  lastAtOrBelow(streamId: number, offset: number): number {
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const at = this.start + middle * INDEX_ENTRY_BYTES;
      const middleId = readU64(this.bytes, at);
      const isAbove = middleId > streamId || (middleId === streamId && readU64(this.bytes, at + 8) > offset);
      if (isAbove) high = middle;
      else low = middle + 1;
    }
    return low - 1;
  }
}

export function encodeIndexEntry(out: ByteWriter, entry: IndexEntry): void {
  out.u64(entry.streamId);
  out.u64(entry.offset);
  out.u32(entry.position);
  out.u32(entry.length);
  out.bigU64(entry.checksum);
}

/** The part of a stream in a block; null where the block has none. Throws `corrupt` where the directory makes no sense. */
export function findPart(block: Uint8Array, streamId: number, what: string): { readonly start: number; readonly end: number } | null {
  const count = block.length < PART_COUNT_BYTES ? -1 : readU32(block, block.length - PART_COUNT_BYTES);
  const directoryStart = block.length - PART_COUNT_BYTES - count * DIRECTORY_ENTRY_BYTES;
  if (count < 1 || directoryStart < 0) throw new PicoError("corrupt", `${what}: a block without a directory`, { where: what });
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (readU64(block, directoryStart + middle * DIRECTORY_ENTRY_BYTES) < streamId) low = middle + 1;
    else high = middle;
  }
  const entryAt = directoryStart + low * DIRECTORY_ENTRY_BYTES;
  if (low === count || readU64(block, entryAt) !== streamId) return null;
  const start = readU32(block, entryAt + 8);
  const end = low + 1 === count ? directoryStart : readU32(block, entryAt + DIRECTORY_ENTRY_BYTES + 8);
  if (start >= end || end > directoryStart) throw new PicoError("corrupt", `${what}: a block's parts overlap`, { where: what });
  return { start, end };
}

/**
 * Reads one data object from end to end and checks every checksum, a bounded run of bytes at a time and past the
 * block cache. Blocks, leaves and head must fill the object without a gap, so that no byte goes unlooked at.
 */
import { concatBytes, utf8Encoder } from "../lib/bytes.ts";
import { checksum64 } from "../lib/checksum.ts";
import { PicoError } from "../lib/errors.ts";
import { OBJECT_HEAD_READ_BYTES, SCRUB_READ_BYTES } from "../lib/limits.ts";
import { DATA_OBJECT_MAGIC, IndexEntries, type IndexEntry } from "./data-object-format.ts";
import { checkHead, DataObjectHead, headStart, type ObjectIdentity } from "./data-object-head.ts";

/** Exactly the bytes [start, end). Throws what it wants to end the reading with, and `corrupt` where there are fewer. */
export type ReadRange = (start: number, end: number) => Promise<Uint8Array>;

const MAGIC = utf8Encoder.encode(DATA_OBJECT_MAGIC);

/** Throws `corrupt` or `incompatible` with the object's key and the bytes concerned, and as `read` does. */
export async function verifyObject(key: string, identity: ObjectIdentity, read: ReadRange): Promise<void> {
  const what = `data object ${key}`;
  const head = await readHead(what, identity, read);
  const { filterPosition } = head.footer;
  const begin = await read(0, Math.min(MAGIC.length, identity.sizeBytes));
  if (!MAGIC.every((byte, at) => begin[at] === byte)) throw damaged(what, 0, MAGIC.length, "it does not begin as a data object does");
  let position = MAGIC.length;
  // Leaves name the blocks before them; all record blocks come first.
  const leaves: IndexEntry[] = [];
  for (const part of [head.recordLeaves, head.stateLeaves]) {
    for (const entry of entriesOf(part)) {
      leaves.push(entry);
      const blocks = [...entriesOf(IndexEntries.ofLeaf(await readRun(what, [entry], read)))];
      position = expectRun(what, position, blocks);
      for (let at = 0; at < blocks.length; ) {
        const run = runFrom(blocks, at);
        await readRun(what, run, read);
        at += run.length;
      }
    }
  }
  position = expectRun(what, position, leaves);
  if (position !== filterPosition) throw damaged(what, position, filterPosition, "nothing names these bytes");
}

async function readHead(what: string, identity: ObjectIdentity, read: ReadRange): Promise<DataObjectHead> {
  const { sizeBytes } = identity;
  const readFrom = Math.max(0, sizeBytes - OBJECT_HEAD_READ_BYTES);
  const end = await read(readFrom, sizeBytes);
  const start = headStart(end, identity, what);
  const head = start >= readFrom ? end.subarray(start - readFrom) : concatBytes([await read(start, readFrom), end]);
  checkHead(head, what);
  return new DataObjectHead(head, what);
}

/** Reads neighbours together, and checks each. */
async function readRun(what: string, run: readonly IndexEntry[], read: ReadRange): Promise<Uint8Array> {
  const start = run[0]?.position ?? 0;
  const bytes = await read(start, start + run.reduce((sum, { length }) => sum + length, 0));
  for (const { position, length, checksum } of run) {
    const block = bytes.subarray(position - start, position - start + length);
    if (checksum64(block) !== checksum) throw damaged(what, position, position + length, "the checksum does not match");
  }
  return bytes;
}

/** At least one, and as many of those behind it as lie side by side within the bytes of one read. */
function runFrom(entries: readonly IndexEntry[], from: number): IndexEntry[] {
  const run: IndexEntry[] = [];
  let bytes = 0;
  for (let at = from; at < entries.length; at++) {
    const [entry, last] = [entries[at], run.at(-1)];
    if (entry === undefined) break;
    if (last !== undefined && (last.position + last.length !== entry.position || bytes + entry.length > SCRUB_READ_BYTES)) break;
    run.push(entry);
    bytes += entry.length;
  }
  return run;
}

function* entriesOf(entries: IndexEntries): Generator<IndexEntry> {
  for (let at = 0; at < entries.count; at++) yield entries.at(at);
}

/** Where a run that begins at `position` ends. */
function expectRun(what: string, position: number, entries: readonly IndexEntry[]): number {
  let end = position;
  for (const entry of entries) {
    if (entry.position !== end) throw damaged(what, end, entry.position, "nothing names these bytes");
    end += entry.length;
  }
  return end;
}

function damaged(what: string, start: number, end: number, how: string): PicoError {
  const where = `${what}, bytes ${start} to ${end}`;
  return new PicoError("corrupt", `${where}: ${how}`, { where, start, end });
}

/** Folds cached WAL entries of one stream onto the tail state that one of them carries. */
import { assert } from "../lib/assert.ts";
import { PicoError } from "../lib/errors.ts";
import { formatRegistration, type RegistrationName } from "../lib/registration.ts";
import type { LogEntry } from "./log-cache.ts";
import { TailFold } from "./tail-fold.ts";
import { decodeWalEntry, hasBase, type WalEntry } from "./wal-entry.ts";
import { describeSegment } from "./wal-segment-format.ts";
import type { WorkSlices } from "./work-slices.ts";

/** The tail state behind consecutive entries of one stream, of which some, the first at the latest, has a base. */
export function foldEntries(entries: readonly LogEntry[], wal: RegistrationName): TailFold {
  const { fold, rest } = startFold(entries, wal);
  for (const entry of rest) fold.apply(decode(entry, wal));
  return fold;
}

/** The same, with pauses for other work: there may be hundreds of thousands of entries. */
export async function foldEntriesInSlices(entries: readonly LogEntry[], wal: RegistrationName, slices: WorkSlices): Promise<TailFold> {
  const { fold, rest } = startFold(entries, wal);
  for (const entry of rest) {
    fold.apply(decode(entry, wal));
    const pause = slices.step(0);
    if (pause !== null) await pause;
  }
  return fold;
}

/** The newest base, with the entries from its own on to be applied. */
function startFold(entries: readonly LogEntry[], wal: RegistrationName): { readonly fold: TailFold; readonly rest: readonly LogEntry[] } {
  const from = entries.findLastIndex((entry) => hasBase(entry.segment.bytes, entry.start));
  const first = entries[from];
  if (first === undefined) {
    const streamId = entries[0]?.log.streamId ?? -1;
    throw new PicoError("corrupt", `WAL ${formatRegistration(wal)}: the first entry of stream ${streamId} has no tail state`, {
      where: `WAL ${formatRegistration(wal)}, stream ${streamId}`,
    });
  }
  const { base } = decode(first, wal);
  assert(base !== null, "the entry has the base that its flags promise");
  return { fold: new TailFold(base), rest: from === 0 ? entries : entries.slice(from) };
}

function decode(entry: LogEntry, wal: RegistrationName): WalEntry {
  return decodeWalEntry(entry.segment.bytes, entry.start, describeSegment(wal, entry.segment.number));
}

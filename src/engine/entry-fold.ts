/** Folds cached WAL entries of one stream onto the tail state that one of them carries. */
import { assert } from "../lib/assert.ts";
import { PicoError } from "../lib/errors.ts";
import { formatRegistration, type RegistrationName } from "../lib/registration.ts";
import type { LogEntry } from "./log-cache.ts";
import { TailFold } from "./tail-fold.ts";
import { decodeWalEntry, type WalEntry } from "./wal-entry.ts";
import { describeSegment } from "./wal-segment.ts";

/** The tail state behind consecutive entries of one stream, of which some, the first at the latest, has a base. */
export function foldEntries(entries: readonly LogEntry[], wal: RegistrationName): TailFold {
  const decoded: WalEntry[] = [];
  let fold: TailFold | null = null;
  for (let at = entries.length - 1; at >= 0 && fold === null; at--) {
    const entry = entries[at];
    assert(entry !== undefined, "the entry is in the list");
    const read = decodeWalEntry(entry.segment.bytes, entry.start, describeSegment(wal, entry.segment.number));
    decoded.push(read);
    if (read.base !== null) fold = new TailFold(read.base);
  }
  if (fold === null) {
    const streamId = entries[0]?.log.streamId ?? -1;
    throw new PicoError("corrupt", `WAL ${formatRegistration(wal)}: the first entry of stream ${streamId} has no tail state`, {
      where: `WAL ${formatRegistration(wal)}, stream ${streamId}`,
    });
  }
  for (const entry of decoded.reverse()) fold.apply(entry);
  return fold;
}

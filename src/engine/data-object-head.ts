/**
 * The end of a data object, from the filter on: what tells where everything else is. It is read once
 * an object, checked, and kept as one run of bytes; this gives it meaning in place.
 */
import { ByteReader } from "../lib/bytes.ts";
import { checksum64 } from "../lib/checksum.ts";
import { PicoError } from "../lib/errors.ts";
import { BloomFilter } from "./bloom-filter.ts";
import { type DataObjectFooter, decodeFooter, INDEX_ENTRY_BYTES, IndexEntries } from "./data-object-format.ts";

/** What the metadata says of an object. */
export interface ObjectIdentity {
  readonly clusterId: string;
  readonly objectId: number;
  readonly sizeBytes: number;
}

export class DataObjectHead {
  readonly footer: DataObjectFooter;
  /** Index entries of the leaves. */
  readonly recordLeaves: IndexEntries;
  readonly stateLeaves: IndexEntries;
  readonly #filter: BloomFilter | null;

  /** `bytes`: the object from its filter to its end, checked by `checkHead`. */
  constructor(bytes: Uint8Array, what: string) {
    const { footer } = decodeFooter(bytes, what);
    const { filterLength, recordLeafCount, stateLeafCount } = footer;
    this.footer = footer;
    this.#filter = filterLength === 0 ? null : BloomFilter.decode(new ByteReader(bytes, 0, filterLength, what));
    this.recordLeaves = new IndexEntries(bytes, filterLength, recordLeafCount);
    this.stateLeaves = new IndexEntries(bytes, filterLength + recordLeafCount * INDEX_ENTRY_BYTES, stateLeafCount);
  }

  /** False only if the object holds neither records nor the tail state of the stream. */
  mayContain(streamId: number): boolean {
    const { first, last } = this.footer;
    if (streamId < first.streamId || streamId > last.streamId) return false;
    return this.#filter === null || this.#filter.mayContain(streamId);
  }
}

/**
 * Where the head begins in the object, by its footer, which ends `bytes`. Throws `corrupt` where the
 * footer is damaged or is that of another object.
 */
export function headStart(bytes: Uint8Array, identity: ObjectIdentity, what: string): number {
  const { footer, footerLength } = decodeFooter(bytes, what);
  if (footer.objectId !== identity.objectId || footer.clusterId !== identity.clusterId) {
    const message = `${what}: holds object ${footer.objectId} of cluster ${footer.clusterId}, not object ${identity.objectId} of ${identity.clusterId}`;
    throw new PicoError("corrupt", message, { where: what });
  }
  const topLength = (footer.recordLeafCount + footer.stateLeafCount) * INDEX_ENTRY_BYTES;
  const end = footer.filterPosition + footer.filterLength + footer.topLength + footerLength;
  if (footer.topLength !== topLength || end !== identity.sizeBytes) {
    throw new PicoError("corrupt", `${what}: its parts do not fill its ${identity.sizeBytes} bytes`, { where: what });
  }
  return footer.filterPosition;
}

/** Throws `corrupt` where filter and top index are damaged. */
export function checkHead(bytes: Uint8Array, what: string): void {
  const { footer } = decodeFooter(bytes, what);
  if (checksum64(bytes.subarray(0, footer.filterLength + footer.topLength)) !== footer.headChecksum) {
    throw new PicoError("corrupt", `${what}: the filter or the top index is damaged`, { where: what });
  }
}

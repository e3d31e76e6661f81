/**
 * Markers: what a bucket knows about the command log of its cluster. Each says that a node had applied the log
 * up to an index, under the row id that stood there, and nothing is deleted from the store before one at or
 * above the command that allows it is stored. So a database that was set back behind that command, or another
 * cluster's, is told from the right one by the bucket alone (FAULTS D1, L2).
 *
 * The stored form, one object under `<cluster>/marker/<index, 16 digits>`, created and never written again:
 *
 * ```
 *  byte  size  field
 *     0     8  checksum64 of everything behind it: bytes [8, end)
 *     8     4  magic "PICM"
 *    12     2  version, 1
 *    14     2  reserved, 0
 *    16     8  index
 *    24    16  row id of the log row at the index
 *    40    16  cluster identity, chosen when the database was made
 *    56     …  cluster id: varint length, UTF-8
 * ```
 *
 * The highest marker counts. A lower one says nothing that the highest does not say, and may go once that is
 * certainly stored.
 */
import { ByteReader, ByteWriter, utf8Encoder } from "../lib/bytes.ts";
import { checksum64 } from "../lib/checksum.ts";
import { PicoError } from "../lib/errors.ts";
import { listAll, type ObjectStore } from "../storage/object-store.ts";

export interface StoreMarker {
  /** The command log was applied up to here. */
  readonly index: number;
  /** 32 hex digits: the row id at `index`. */
  readonly rowId: string;
  /** 32 hex digits that name the database. */
  readonly clusterIdentity: string;
  readonly clusterId: string;
}

const MAGIC = 0x5049434d;
const VERSION = 1;
const CHECKED_FROM = 8;
/** Digits of the largest index that a double holds exactly. */
const INDEX_DIGITS = 16;

export function markerPrefix(clusterId: string): string {
  return `${clusterId}/marker/`;
}

export function markerKey(clusterId: string, index: number): string {
  return `${markerPrefix(clusterId)}${String(index).padStart(INDEX_DIGITS, "0")}`;
}

/** The index in a marker's key; null for a key of another form. */
export function parseMarkerKey(clusterId: string, key: string): number | null {
  const index = Number(key.slice(markerPrefix(clusterId).length));
  return Number.isSafeInteger(index) && markerKey(clusterId, index) === key ? index : null;
}

export function encodeMarker({ index, rowId, clusterIdentity, clusterId }: StoreMarker): Uint8Array {
  const out = new ByteWriter();
  out.bigU64(0n);
  out.u32(MAGIC);
  out.u16(VERSION);
  out.u16(0);
  out.u64(index);
  out.bytes(Uint8Array.fromHex(rowId));
  out.bytes(Uint8Array.fromHex(clusterIdentity));
  out.lengthPrefixed(utf8Encoder.encode(clusterId));
  const bytes = out.copy();
  new DataView(bytes.buffer, bytes.byteOffset).setBigUint64(0, checksum64(bytes.subarray(CHECKED_FROM)));
  return bytes;
}

/** Throws `corrupt` where a byte is wrong or the marker belongs under another key, `incompatible` where a newer program wrote it. */
export function decodeMarker(bytes: Uint8Array, clusterId: string, index: number): StoreMarker {
  const where = `marker ${markerKey(clusterId, index)}`;
  const reader = new ByteReader(bytes, 0, bytes.length, where);
  if (reader.bigU64() !== checksum64(bytes.subarray(CHECKED_FROM))) throw damaged(where, "the checksum does not match");
  if (reader.u32() !== MAGIC) throw damaged(where, "it is none");
  const version = reader.u16();
  if (version !== VERSION) {
    throw new PicoError("incompatible", `${where} has format version ${version}, this program reads ${VERSION}; use a newer one`, {
      where,
    });
  }
  if (reader.u16() !== 0) throw damaged(where, "the reserved bytes are set");
  const marker = {
    index: reader.u64(),
    rowId: reader.bytes(16).toHex(),
    clusterIdentity: reader.bytes(16).toHex(),
    clusterId: reader.text(),
  };
  reader.expectEnd();
  if (marker.index !== index || marker.clusterId !== clusterId) {
    throw damaged(where, `it is that of ${markerKey(marker.clusterId, marker.index)}`);
  }
  return marker;
}

/** Reads one back; null where there is none. Throws as the store does, and as `decodeMarker`. */
export async function readMarker(store: ObjectStore, clusterId: string, index: number): Promise<StoreMarker | null> {
  const bytes = await store.read(markerKey(clusterId, index));
  return bytes === null ? null : decodeMarker(bytes, clusterId, index);
}

/** The indexes of all markers, ascending, whatever the order of the store. */
export async function listMarkers(store: ObjectStore, clusterId: string): Promise<readonly number[]> {
  const indexes: number[] = [];
  for await (const { key } of listAll(store, markerPrefix(clusterId))) {
    const index = parseMarkerKey(clusterId, key);
    if (index !== null) indexes.push(index);
  }
  return indexes.sort((left, right) => left - right);
}

/** The marker that counts; null where there is none at all. Throws as `readMarker`. */
export async function highestMarker(store: ObjectStore, clusterId: string): Promise<StoreMarker | null> {
  for (let tries = 1; ; tries++) {
    const index = (await listMarkers(store, clusterId)).at(-1);
    if (index === undefined) return null;
    const marker = await readMarker(store, clusterId, index);
    if (marker !== null) return marker;
    // Another node has put a higher one in its place between the two calls.
    if (tries >= HIGHEST_TRIES_MAX) {
      throw new PicoError("storage_failed", `marker ${markerKey(clusterId, index)} is listed, and reads as absent`, {
        key: markerKey(clusterId, index),
      });
    }
  }
}

/** Looks for the highest marker before one that is listed and absent is taken for a fault of the store. */
const HIGHEST_TRIES_MAX = 5;

function damaged(where: string, what: string): PicoError {
  return new PicoError(
    "corrupt",
    `${where} is damaged: ${what}. It protects what the store holds from a database that is too old; nothing was deleted. ` +
      "Put the object back from a copy of the bucket; if there is none, and the database is certainly the newest, delete this one object",
    { where },
  );
}

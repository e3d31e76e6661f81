/**
 * Writes the golden files of the marker: `bun test/engine/golden/write-marker.ts`. A changed file is a change
 * of format, and its commit says so. Damaged files are named after the damage.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { encodeMarker, type StoreMarker } from "../../../src/engine/store-marker.ts";
import { checksum64 } from "../../../src/lib/checksum.ts";

export const GOLDEN_MARKER: StoreMarker = {
  index: 42,
  rowId: "00112233445566778899aabbccddeeff",
  clusterIdentity: "ffeeddccbbaa99887766554433221100",
  clusterId: "picomq",
};

/** A copy with one byte changed; `rechecked` makes the checksum right again. */
function changed(bytes: Uint8Array, at: number, value: number, rechecked: boolean): Uint8Array {
  const copy = bytes.slice();
  copy[at] = value;
  if (rechecked) new DataView(copy.buffer).setBigUint64(0, checksum64(copy.subarray(8)));
  return copy;
}

export function goldenFiles(): Record<string, Uint8Array> {
  const whole = encodeMarker(GOLDEN_MARKER);
  return {
    "marker-whole": whole,
    "marker-cut": whole.slice(0, whole.length - 1),
    "marker-empty": new Uint8Array(0),
    "marker-one-byte-too-many": new Uint8Array([...whole, 0]),
    "marker-flipped-checksum-bit": changed(whole, 3, (whole[3] ?? 0) ^ 0x10, false),
    "marker-flipped-index-bit": changed(whole, 23, 43, false),
    "marker-flipped-row-id-bit": changed(whole, 30, 0x67, false),
    "marker-of-another-index": encodeMarker({ ...GOLDEN_MARKER, index: 43 }),
    "marker-of-another-cluster": encodeMarker({ ...GOLDEN_MARKER, clusterId: "other" }),
    "marker-reserved-byte-set": changed(whole, 15, 1, true),
    "marker-newer-version": changed(whole, 13, 2, true),
  };
}

if (import.meta.main) {
  for (const [name, bytes] of Object.entries(goldenFiles())) writeFileSync(join(import.meta.dir, `${name}.bin`), bytes);
}

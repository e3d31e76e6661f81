/**
 * What the metadata says of a key of the store. Pure: the comparison of both is a walk over keys that asks here.
 *
 * A key is an orphan only on a positive record: its object id was given out and has left the metadata since, or
 * the registration that wrote the segment is ended. What the metadata cannot explain at all is no orphan: it may
 * be that of a newer database, of a newer program, or somebody else's, and is told, never deleted.
 */
import { type RegistrationName, sameRegistration } from "../lib/registration.ts";
import { type ObjectEntry, parseObjectKey } from "../metadata/entries.ts";
import type { View } from "../metadata/view.ts";
import { TOMBSTONE_BYTES } from "./wal-segment-format.ts";

/** The part of the view that the comparison asks. */
export type ScrubView = Pick<View, "object" | "nextObjectId" | "registration">;

export type OrphanReason =
  /** A data object that has left the metadata: a write that came after its removal. */
  | "removed_object"
  /** A WAL segment of a registration that is ended. */
  | "ended_wal";

export type UnexplainedReason =
  /** A data object under an id, or with a random part, that this database never gave out. */
  | "unknown_object"
  /** A WAL segment of a registration that this database does not know. */
  | "unknown_registration"
  /** No key that this program makes. */
  | "unknown_kind";

export type KeyVerdict =
  /** Rightly there: anything that is not a data object, and data objects that are not live. */
  | { readonly kind: "known" }
  | { readonly kind: "live"; readonly entry: ObjectEntry }
  | { readonly kind: "orphan"; readonly reason: OrphanReason }
  | { readonly kind: "unexplained"; readonly reason: UnexplainedReason };

const KNOWN: KeyVerdict = { kind: "known" };
/** Written and cleaned by others: markers, the mirror of the command log, probes of a start. */
const OTHER_FOLDERS = ["marker/", "mirror/", "probe/"];
/** Digits of the largest number that a double holds exactly. */
const SEGMENT_FORM = /^(-?\d{1,10})\/(\d{1,16})\/\d{16}$/;

/** `key` begins with `<clusterId>/`. The view must be caught up behind the list that gave the key. */
export function judgeKey(clusterId: string, key: string, sizeBytes: number, view: ScrubView): KeyVerdict {
  const rest = key.slice(clusterId.length + 1);
  if (rest.startsWith("data/")) return judgeDataKey(clusterId, key, view);
  if (rest.startsWith("wal/")) return judgeWalKey(rest.slice("wal/".length), sizeBytes, view);
  return OTHER_FOLDERS.some((folder) => rest.startsWith(folder)) ? KNOWN : { kind: "unexplained", reason: "unknown_kind" };
}

function judgeDataKey(clusterId: string, key: string, view: ScrubView): KeyVerdict {
  const named = parseObjectKey(clusterId, key);
  if (named === null) return { kind: "unexplained", reason: "unknown_kind" };
  const { random, objectId } = named;
  const entry = view.object(objectId);
  if (entry === null) {
    return objectId < view.nextObjectId ? { kind: "orphan", reason: "removed_object" } : { kind: "unexplained", reason: "unknown_object" };
  }
  if (entry.random !== random) return { kind: "unexplained", reason: "unknown_object" };
  return entry.state === "live" ? { kind: "live", entry } : KNOWN;
}

/** A tombstone stays for ever, and its size is that of no segment. */
function judgeWalKey(rest: string, sizeBytes: number, view: ScrubView): KeyVerdict {
  const [, nodeId, nodeEpoch] = SEGMENT_FORM.exec(rest) ?? [];
  if (nodeId === undefined || nodeEpoch === undefined) return { kind: "unexplained", reason: "unknown_kind" };
  const name: RegistrationName = { nodeId: Number(nodeId), nodeEpoch: Number(nodeEpoch) };
  const entry = view.registration(name);
  if (entry === null || !sameRegistration(entry.name, name)) return { kind: "unexplained", reason: "unknown_registration" };
  if (entry.state !== "ended" || sizeBytes === TOMBSTONE_BYTES) return KNOWN;
  return { kind: "orphan", reason: "ended_wal" };
}

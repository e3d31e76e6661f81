/**
 * The view: questions about the metadata state, answered from memory. It hides how the state is laid
 * out. Entries it returns are immutable values; the view itself always shows the newest applied state.
 */
import type { RegistrationName } from "../lib/registration.ts";
import type { NodeEntry, ObjectEntry, RegistrationEntry, StreamEntry } from "./entries.ts";
import type { ObjectFigures } from "./object-tally.ts";

export interface View {
  /** Index of the last applied log row. */
  readonly appliedIndex: number;
  /** Row id of that row, 32 hex digits; empty before the first. */
  readonly appliedRowId: string;
  /** Time of the last applied row. */
  readonly appliedAtMs: number;
  readonly streamCount: number;
  /** Nothing leaves the store before this time of the database (`hold_removal`); null: nothing holds it. */
  readonly removalHeldUntilMs: number | null;

  /** Includes deleted streams that forks keep (`isDeleted`). */
  streamByName(name: string): StreamEntry | null;
  streamById(streamId: number): StreamEntry | null;
  /** Streams whose names begin with `prefix` and are greater than `after`, in byte order of UTF-8; not the deleted. */
  listStreams(prefix: string, after: string | null, limit: number): readonly StreamEntry[];
  /** Streams that still need this one's records, deleted ones that are kept included. */
  forksOf(streamId: number): Iterable<StreamEntry>;
  /**
   * Streams of which the last applied row left fewer records needed: deleted, expired or trimmed ones, and the
   * sources whose records only those still needed. Some are not known any more.
   */
  shrunkStreams(): Iterable<number>;
  /** How many streams each registration that has not ended owns today; those without are left out. */
  ownedCounts(): ReadonlyMap<RegistrationEntry, number>;
  /** Streams with a transfer that is stored; it may be over. */
  transferringStreams(): Iterable<StreamEntry>;
  /** All streams, in no particular order. */
  streams(): Iterable<StreamEntry>;

  /**
   * Today's owner: the stored one, or along the heirs of ended registrations; null where nobody is.
   * `recovering`: the owner is fenced and not ended.
   */
  ownerOf(entry: StreamEntry): { readonly owner: RegistrationEntry; readonly recovering: boolean } | null;
  /**
   * Deadline of a stream that nobody owns: max(stored, end of its last registration + TTL), or the
   * absolute expiry; null without either. For an owned stream: what its owner found when it became the
   * owner, a lower bound of today's.
   */
  unownedDeadlineMs(entry: StreamEntry): number | null;

  registration(name: RegistrationName): RegistrationEntry | null;
  registrations(): Iterable<RegistrationEntry>;
  /** The registration that this node id made last, whatever became of it. */
  currentRegistration(nodeId: number): RegistrationEntry | null;
  /** Removed nodes included (`isRemoved`): their epoch still counts. */
  node(nodeId: number): NodeEntry | null;
  /** Without the removed ones. */
  nodes(): Iterable<NodeEntry>;

  object(objectId: number): ObjectEntry | null;
  /** Every id that was ever given out is below. */
  readonly nextObjectId: number;
  objects(): Iterable<ObjectEntry>;
  /** Destroyed objects that the store may still hold; the oldest destruction first. */
  destroyedObjects(): Iterable<ObjectEntry>;
  objectFigures(): ObjectFigures;
  /** Live objects whose range of places covers the stream at or above `fromOffset`; the lowest level first, in it the newest commit first. */
  liveObjectsOf(streamId: number, fromOffset?: number): readonly ObjectEntry[];
}

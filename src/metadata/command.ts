/**
 * The commands: every change of cluster state, as a value that already holds every choice (ids, names,
 * randomness), so that `apply` needs no clock, no setting and no chance. Times they need are the log
 * row's. Encoding and permanent type numbers: `command-format.ts`. Preconditions: `apply.ts`.
 *
 * Every command has a proposer, the registration of the log row that carries it, and is refused with
 * `proposer_dead` once that is fenced or ended.
 */
import type { RegistrationName } from "../lib/registration.ts";

/** Where a registration's WAL is and whether another node can take it over by fencing. */
export interface WalLocation {
  readonly kind: "local" | "object" | "postgres";
  /** For operators; without secrets. */
  readonly description: string;
}

export interface Addresses {
  /** Advertised URLs of the listeners; null where there is none. */
  readonly pico: string | null;
  readonly durableStreams: string | null;
  readonly admin: string | null;
}

export interface StreamSettings {
  readonly contentType: string;
  /** Sliding life in seconds, a u64; null: none. Excludes `expiresAtMs`. */
  readonly ttlSeconds: bigint | null;
  readonly expiresAtMs: number | null;
}

export interface ForkOrigin {
  readonly sourceId: number;
  readonly sourceName: string;
  /** First offset that is the fork's own; below it the source's records are read. */
  readonly offset: number;
  /** As asked for, for the comparison of a repeated PUT; null: the source's tail at that time. */
  readonly requestedOffset: number | null;
  readonly requestedSubOffset: number;
}

/** Place of a record in the order of data objects. */
export interface RecordPlace {
  readonly streamId: number;
  readonly offset: number;
}

/** A data object as commits name it. */
export interface ObjectSummary {
  readonly objectId: number;
  readonly level: number;
  readonly sizeBytes: number;
  readonly streamCount: number;
  readonly recordCount: number;
  /** Lowest and highest place in it. An object that holds only tail states has offset = that stream's next offset. */
  readonly first: RecordPlace;
  readonly last: RecordPlace;
}

export type Command =
  // Nodes.
  | {
      readonly type: "register";
      /** The new registration: also the proposer. */
      readonly node: RegistrationName;
      readonly addresses: Addresses;
      readonly wal: WalLocation;
      readonly slots: number;
      readonly failoverTimeoutMs: number;
      readonly commandVersion: number;
      /** Epoch of the registration of the same node id that this one replaces and fences; null: none was known. Compare-and-set. */
      readonly replaces: number | null;
    }
  | { readonly type: "fence"; readonly victim: RegistrationName }
  | {
      readonly type: "end";
      readonly victim: RegistrationName;
      /** Number of the last WAL segment of the victim: must be its committed position. */
      readonly lastNumber: number;
      /** Owns the victim's streams from here on; null: they are nobody's. */
      readonly heir: RegistrationName | null;
    }
  | { readonly type: "resize"; readonly nodeId: number; readonly slots: number }
  | { readonly type: "remove_node"; readonly nodeId: number }
  /** Reserves `STREAM_IDS_PER_RESERVATION` stream ids for the proposer: fact `firstStreamId`. */
  | { readonly type: "reserve_ids" }
  // The cluster.
  /** Nothing leaves the store until then, by the time of the database; null: removal goes on. */
  | { readonly type: "hold_removal"; readonly untilMs: number | null }
  /** Ids below these are never given out again, whoever had them. Lower ones than the present change nothing. */
  | { readonly type: "raise_ids"; readonly nextStreamId: number; readonly nextObjectId: number }
  // Streams.
  | {
      readonly type: "create_stream";
      readonly streamId: number;
      readonly name: string;
      readonly settings: StreamSettings;
      readonly isClosed: boolean;
      readonly fork: ForkOrigin | null;
    }
  | { readonly type: "delete_stream"; readonly streamId: number }
  /** `deadlineMs`: what the owner (or, for unowned streams, the state) holds it to be; refused before that time. */
  | { readonly type: "expire_stream"; readonly streamId: number; readonly deadlineMs: number }
  | { readonly type: "trim_stream"; readonly streamId: number; readonly startOffset: number }
  | { readonly type: "acquire_stream"; readonly streamId: number }
  | { readonly type: "release_stream"; readonly streamId: number; readonly deadlineMs: number | null; readonly walNumber: number }
  /** Deadlines that touches moved, stored before a graceful end. */
  | { readonly type: "store_deadlines"; readonly deadlines: readonly { readonly streamId: number; readonly deadlineMs: number }[] }
  | { readonly type: "start_transfer"; readonly streamId: number; readonly toNodeId: number; readonly deadlineMs: number }
  | { readonly type: "finish_transfer"; readonly streamId: number }
  // Objects.
  | {
      readonly type: "prepare_objects";
      /** One object a member: 64 random bits, 16 hex digits, for the key. */
      readonly randoms: readonly string[];
      readonly expiresAtMs: number;
    }
  | {
      readonly type: "commit";
      /** Whose WAL: the proposer's own, or that of a fenced registration. */
      readonly wal: RegistrationName;
      /** The WAL interval (from, to] whose records the objects hold. */
      readonly from: number;
      readonly to: number;
      readonly objects: readonly ObjectSummary[];
      /** Streams that the interval closed. */
      readonly closedStreams: readonly number[];
    }
  | { readonly type: "compact"; readonly inputs: readonly number[]; readonly outputs: readonly ObjectSummary[] }
  | { readonly type: "destroy_objects"; readonly objectIds: readonly number[] }
  | { readonly type: "remove_objects"; readonly objectIds: readonly number[] };

export type RefusalCode =
  | "proposer_dead" // the proposer is unknown, fenced or ended
  | "epoch_conflict" // register: another registration of this node id is current
  | "unknown_registration"
  | "already_fenced"
  | "not_fenced"
  | "already_ended"
  | "wal_position" // end, commit, release: not the committed position
  | "name_taken" // create: fact `streamId`
  | "id_taken"
  | "unknown_stream"
  | "not_owner" // the proposer does not own the stream
  | "owned" // acquire: another registration owns it
  | "owner_in_recovery" // the owner is fenced and not ended
  | "not_due" // expire: the deadline is not reached
  | "expired" // acquire: past the deadline; the stream was removed
  | "transfer_pending"
  | "no_transfer"
  | "unknown_node"
  | "node_alive"
  | "unknown_object"
  | "object_state" // not prepared, not live, or not destroyed, as the command needs
  | "fork_source" // the source is unknown, deleted, or not the proposer's
  | "stale_version" // proposed by a node that does not speak the cluster's command version
  | "batch_order"; // the batch is not the next one of its registration: a late repeat of an older one

/** What apply made of one command. Facts are small numbers that the proposer needs. */
export type Outcome =
  | { readonly applied: true; readonly facts: Readonly<Record<string, number>> }
  | { readonly applied: false; readonly code: RefusalCode; readonly facts: Readonly<Record<string, number>> };

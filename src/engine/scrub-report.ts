/** What a scrub was asked for, how far it is, and what it found: lists are bounded, counts are of all. */
import { ADMIN_ITEMS_MAX } from "../lib/limits.ts";
import type { KeyVerdict, OrphanReason, UnexplainedReason } from "./scrub-keys.ts";

export interface ScrubRequest {
  /** Read every live object whole and check its checksums. */
  readonly verifies: boolean;
  readonly deletesOrphans: boolean;
  /** Only orphans that the store took longer ago are deleted. */
  readonly minAgeMs: number;
  readonly by: "operator" | "schedule";
}

/** `list`: keys; `confirm`: objects that the list did not have; `verify`: bytes; `delete`: keys. */
export type ScrubPhase = "list" | "confirm" | "verify" | "delete" | "done";

export interface ScrubProgress {
  phase: ScrubPhase;
  /** In units of the phase. */
  done: number;
  /** Null where nobody knows. */
  total: number | null;
}

/** The first of many. */
export class Findings<Item> {
  readonly items: Item[] = [];
  #count = 0;

  get count(): number {
    return this.#count;
  }

  add(item: Item): void {
    this.#count += 1;
    if (this.items.length < ADMIN_ITEMS_MAX) this.items.push(item);
  }
}

export interface FoundKey {
  readonly key: string;
  readonly sizeBytes: number;
  /** By the store's clock. */
  readonly modifiedMs: number;
}

/** Why orphans that were to be deleted are all still there. */
export type DeletionRefusal =
  /** Objects are missing or damaged: what is left may be needed to mend that. */
  | "damage"
  /** Keys are there that the database should know: it may be older than the store, or another one. */
  | "unexplained_keys"
  /** Removal is held, or the marker that has to stand before a delete could not be stored. */
  | "removal_held";

export class ScrubReport {
  /** Of everything below the cluster's prefix, and of the WAL in a store of its own. */
  keyCount = 0;
  keyBytes = 0;
  /** Live objects at the start. */
  liveCount = 0;
  verifiedCount = 0;
  verifiedBytes = 0;
  /** Live, and not in the store. */
  readonly missing = new Findings<{ readonly key: string; readonly sizeBytes: number }>();
  /** Live, and of another size than was committed. */
  readonly wrongSize = new Findings<{ readonly key: string; readonly expectedBytes: number; readonly foundBytes: number }>();
  /** Live, and damaged where a checksum was looked at. */
  readonly damaged = new Findings<{ readonly key: string; readonly what: string }>();
  readonly orphans = new Findings<FoundKey & { readonly reason: OrphanReason }>();
  orphanBytes = 0;
  readonly unexplained = new Findings<FoundKey & { readonly reason: UnexplainedReason }>();
  /** Of the unexplained: keys that the right database would know. */
  isDatabaseBehind = false;
  deletedCount = 0;
  deletedBytes = 0;
  /** Orphans that stay because the store took them too short a time ago. */
  youngCount = 0;
  /** Orphans that the store would not delete, with its own words. */
  readonly refused = new Findings<{ readonly key: string; readonly code: string; readonly message: string }>();
  deletionRefusal: DeletionRefusal | null = null;

  /** Takes in a listed key. */
  noteKey(found: FoundKey, verdict: KeyVerdict): void {
    this.keyCount += 1;
    this.keyBytes += found.sizeBytes;
    if (verdict.kind === "orphan") {
      this.orphans.add({ ...found, reason: verdict.reason });
      this.orphanBytes += found.sizeBytes;
    } else if (verdict.kind === "unexplained") {
      this.unexplained.add({ ...found, reason: verdict.reason });
      if (verdict.reason !== "unknown_kind") this.isDatabaseBehind = true;
    }
  }

  /** Something that was acknowledged may not be readable. */
  get hasDamage(): boolean {
    return this.missing.count + this.wrongSize.count + this.damaged.count > 0;
  }
}

/** A scrub under way, or over. */
export interface ScrubRun {
  readonly request: ScrubRequest;
  /** Wall clock. */
  readonly startedAtMs: number;
  endedAtMs: number | null;
  readonly progress: ScrubProgress;
  readonly report: ScrubReport;
  /** Why it could not be finished: what it found until then counts, what it did not find does not. */
  error: string | null;
}

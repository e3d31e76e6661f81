/**
 * What to merge next, decided from the live objects alone: no I/O, no clock.
 *
 * 1. Level 0, as uploaded: once there are `depthMax` objects, the oldest ones of all nodes are merged into
 *    level 1.
 * 2. Deeper levels: what counts is *depth*, the most objects of a level that cover one place of (stream id,
 *    offset). Where it reaches `depthMax`, the objects that cover the place are merged into the next level.
 * 3. Deeper levels: `depthMax` small objects next to each other become one of the same level, so that the
 *    number of objects follows the bytes also where most of a run has died.
 *
 * Invariants: inputs are live and usable, at least two, and of one level. Each plan lifts its inputs by a
 * level, takes them apart or leaves fewer objects (what would not is given up, and its inputs are dense from
 * there on), so planning ends; at the end no place has `depthMax` objects of a level. The first
 * two rules rewrite a byte once a level, and a level needs several times the objects of the one above it.
 */
import { assert } from "../lib/assert.ts";
import type { ObjectSummary, RecordPlace } from "../metadata/command.ts";
import type { ObjectEntry } from "../metadata/entries.ts";
import { comparePlaces } from "../metadata/object-index.ts";

export interface CompactionLimits {
  /** Objects of level 0, and objects that cover one place of a deeper level, that are too many. At least 2. */
  readonly depthMax: number;
  readonly inputsMax: number;
  /** Bytes of all inputs, except that two objects always fit. */
  readonly inputBytesMax: number;
  /** An object below this is small. */
  readonly smallBytes: number;
  /** Objects of this level are merged within it. */
  readonly levelMax: number;
}

export interface CompactionPlan {
  /** Oldest first. */
  readonly inputs: readonly ObjectEntry[];
  readonly outputLevel: number;
  /** For operators. */
  readonly reason: "level_0" | "depth" | "small" | "dead";
}

interface Candidate {
  readonly entry: ObjectEntry;
  readonly summary: ObjectSummary;
}

/** What earlier plans have learned of objects. */
export interface ObjectKnowledge {
  /** Could not be read: it is left alone, and counted nowhere. */
  isUnusable(entry: ObjectEntry): boolean;
  /** Small, and yet a merge with small neighbours makes no fewer objects. */
  isDense(entry: ObjectEntry): boolean;
}

const NOTHING_KNOWN: ObjectKnowledge = { isUnusable: () => false, isDense: () => false };

export function planCompaction(
  objects: Iterable<ObjectEntry>,
  limits: CompactionLimits,
  known: ObjectKnowledge = NOTHING_KNOWN,
): CompactionPlan | null {
  assert(limits.depthMax >= 2, "a merge has two inputs");
  const levels = new Map<number, Candidate[]>();
  for (const entry of objects) {
    if (entry.state !== "live" || entry.summary === null || known.isUnusable(entry)) continue;
    const level = levels.get(entry.summary.level) ?? [];
    level.push({ entry, summary: entry.summary });
    levels.set(entry.summary.level, level);
  }
  for (const level of [...levels.keys()].sort((left, right) => left - right)) {
    const candidates = levels.get(level) ?? [];
    if (candidates.length < limits.depthMax) continue;
    const plan = level === 0 ? planUploaded(candidates, limits) : planLevel(level, candidates.sort(byPlace), limits, known);
    if (plan !== null) return plan;
  }
  return null;
}

function planUploaded(candidates: readonly Candidate[], limits: CompactionLimits): CompactionPlan {
  return { inputs: oldest(candidates, limits), outputLevel: 1, reason: "level_0" };
}

/** `candidates` in the order of their first places. */
function planLevel(
  level: number,
  candidates: readonly Candidate[],
  limits: CompactionLimits,
  known: ObjectKnowledge,
): CompactionPlan | null {
  /** Those that cover the first place of the candidate looked at. */
  let covering: Candidate[] = [];
  for (const candidate of candidates) {
    covering = covering.filter(({ summary }) => comparePlaces(summary.last, candidate.summary.first) >= 0);
    covering.push(candidate);
    if (covering.length < limits.depthMax) continue;
    return { inputs: oldest(covering, limits), outputLevel: Math.min(level + 1, limits.levelMax), reason: "depth" };
  }
  let small: Candidate[] = [];
  for (const candidate of candidates) {
    if (candidate.summary.sizeBytes >= limits.smallBytes || known.isDense(candidate.entry)) small = [];
    else small.push(candidate);
    if (small.length === limits.depthMax) return { inputs: oldest(small, limits), outputLevel: level, reason: "small" };
  }
  return null;
}

function oldest(candidates: readonly Candidate[], limits: CompactionLimits): ObjectEntry[] {
  const inputs: ObjectEntry[] = [];
  let bytes = 0;
  for (const { entry, summary } of [...candidates].sort(byAge)) {
    bytes += summary.sizeBytes;
    if (inputs.length >= 2 && (inputs.length >= limits.inputsMax || bytes > limits.inputBytesMax)) break;
    inputs.push(entry);
  }
  return inputs;
}

function byAge(left: Candidate, right: Candidate): number {
  return (left.entry.liveIndex ?? 0) - (right.entry.liveIndex ?? 0) || left.entry.objectId - right.entry.objectId;
}

function byPlace(left: Candidate, right: Candidate): number {
  return comparePlaces(left.summary.first, right.summary.first) || left.entry.objectId - right.entry.objectId;
}

/** The most objects of the list that cover one place. */
export function depthOf(summaries: readonly { readonly first: RecordPlace; readonly last: RecordPlace }[]): number {
  let depth = 0;
  let covering: { readonly last: RecordPlace }[] = [];
  for (const summary of [...summaries].sort((left, right) => comparePlaces(left.first, right.first))) {
    covering = covering.filter(({ last }) => comparePlaces(last, summary.first) >= 0);
    covering.push(summary);
    depth = Math.max(depth, covering.length);
  }
  return depth;
}

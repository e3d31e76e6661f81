import { describe, expect, test } from "bun:test";
import { type CompactionLimits, type CompactionPlan, depthOf, planCompaction } from "../../src/engine/compaction-plan.ts";
import { OFFSET_MAX } from "../../src/lib/limits.ts";
import type { ObjectSummary, RecordPlace } from "../../src/metadata/command.ts";
import type { ObjectEntry } from "../../src/metadata/entries.ts";
import { comparePlaces } from "../../src/metadata/object-index.ts";
import { Chance } from "./record-fixtures.ts";

const LIMITS: CompactionLimits = { depthMax: 8, inputsMax: 64, inputBytesMax: 1000, smallBytes: 0, levelMax: 20 };

function entryOf(objectId: number, summary: Partial<ObjectSummary>, liveIndex = objectId): ObjectEntry {
  return {
    objectId,
    random: "0",
    state: "live",
    preparedBy: { nodeId: 1, nodeEpoch: 1 },
    preparedUntilMs: 0,
    summary: { objectId, level: 0, sizeBytes: 10, streamCount: 1, recordCount: 1, first: at(1), last: at(9), ...summary },
    liveIndex,
    destroyedIndex: null,
    destroyedAtMs: null,
  };
}

function at(streamId: number, offset = 0): RecordPlace {
  return { streamId, offset };
}

function many(count: number, summary: (at: number) => Partial<ObjectSummary>): ObjectEntry[] {
  return Array.from({ length: count }, (_, i) => entryOf(i + 1, summary(i)));
}

function idsOf(plan: CompactionPlan | null): number[] {
  return plan === null ? [] : plan.inputs.map(({ objectId }) => objectId);
}

describe("of level 0", () => {
  test("seven objects are left alone, eight are merged into level 1", () => {
    expect(
      planCompaction(
        many(7, () => ({})),
        LIMITS,
      ),
    ).toBeNull();
    const plan = planCompaction(
      many(8, () => ({})),
      LIMITS,
    );
    expect(plan).toMatchObject({ outputLevel: 1, reason: "level_0" });
    expect(idsOf(plan)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  test("the oldest commits go first, whatever their ids, up to the limits of count and bytes, and two at least", () => {
    const objects = Array.from({ length: 100 }, (_, i) => entryOf(i + 1, {}, 1000 - i));
    expect(idsOf(planCompaction(objects, LIMITS))).toEqual(Array.from({ length: 64 }, (_, i) => 100 - i));
    expect(idsOf(planCompaction(objects, { ...LIMITS, inputBytesMax: 35 }))).toEqual([100, 99, 98]);
    expect(idsOf(planCompaction(objects, { ...LIMITS, inputBytesMax: 1 }))).toEqual([100, 99]);
  });

  test("objects that are prepared, destroyed or unusable are not there", () => {
    const objects = many(10, () => ({})).map((entry, i): ObjectEntry => {
      if (i === 0) return { ...entry, state: "prepared", summary: null };
      return i === 1 ? { ...entry, state: "destroyed" } : entry;
    });
    expect(idsOf(planCompaction(objects, LIMITS))).toEqual([3, 4, 5, 6, 7, 8, 9, 10]);
    const known = { isUnusable: ({ objectId }: ObjectEntry) => objectId === 5, isDense: () => false };
    expect(planCompaction(objects, LIMITS, known)).toBeNull();
  });
});

describe("of deeper levels", () => {
  test("objects side by side are left alone however many they are, eight over one place are merged into the next level", () => {
    const run = many(100, (i) => ({ level: 1, first: at(i, 0), last: at(i, 9) }));
    expect(planCompaction(run, LIMITS)).toBeNull();
    const over = Array.from({ length: 7 }, (_, i) => entryOf(200 + i, { level: 1, first: at(40, 5), last: at(60, 0) }));
    const plan = planCompaction([...run, ...over], LIMITS);
    expect(plan).toMatchObject({ outputLevel: 2, reason: "depth" });
    expect(idsOf(plan)).toEqual([41, 200, 201, 202, 203, 204, 205, 206]);
    expect(planCompaction([...run, ...over.slice(1)], LIMITS)).toBeNull();
  });

  test("places touch by offset: one behind the other is no overlap, the same offset is", () => {
    const limits = { ...LIMITS, depthMax: 2 };
    const low = entryOf(1, { level: 1, first: at(5, 0), last: at(5, 9) });
    const high = (offset: number) => entryOf(2, { level: 1, first: at(5, offset), last: at(OFFSET_MAX, OFFSET_MAX) });
    expect(planCompaction([low, high(10)], limits)).toBeNull();
    expect(idsOf(planCompaction([low, high(9)], limits))).toEqual([1, 2]);
  });

  test("another level's objects over the place count for nothing", () => {
    expect(
      planCompaction(
        many(14, (i) => ({ level: 1 + (i % 2) })),
        LIMITS,
      ),
    ).toBeNull();
  });

  test("at the last level they are merged within it", () => {
    expect(
      planCompaction(
        many(8, () => ({ level: 20 })),
        LIMITS,
      ),
    ).toMatchObject({ outputLevel: 20 });
  });

  test("small neighbours are merged within their level, but not over a large one between them, nor one that is dense", () => {
    const limits = { ...LIMITS, smallBytes: 50 };
    const small = (i: number) => ({ level: 3, first: at(i), last: at(i, 9) });
    const plan = planCompaction(many(9, small), limits);
    expect(plan).toMatchObject({ outputLevel: 3, reason: "small" });
    expect(idsOf(plan)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(
      planCompaction(
        many(14, (i) => ({ ...small(i), sizeBytes: i === 7 ? 50 : 10 })),
        limits,
      ),
    ).toBeNull();
  });
});

/** Carries plans out on summaries alone: the outputs are a run over what the inputs span, no larger than they. */
class PlanModel {
  objects: ObjectEntry[] = [];
  written = 0;
  uploaded = 0;
  #nextId = 1;

  constructor(
    private readonly chance: Chance,
    private readonly limits: CompactionLimits,
    private readonly objectBytes: number,
  ) {}

  add(level: number, first: RecordPlace, last: RecordPlace, sizeBytes: number): void {
    const objectId = this.#nextId++;
    if (level === 0) this.uploaded += sizeBytes;
    this.objects.push(entryOf(objectId, { level, first, last, sizeBytes }));
  }

  /** Whether there was a plan. */
  step(): boolean {
    const plan = planCompaction(this.objects, this.limits);
    if (plan === null) return false;
    const { inputs, outputLevel } = plan;
    expect(inputs.length).toBeGreaterThanOrEqual(2);
    expect(inputs.length).toBeLessThanOrEqual(this.limits.inputsMax);
    expect(new Set(inputs).size).toBe(inputs.length);
    for (const input of inputs) expect(this.objects).toContain(input);
    expect(new Set(inputs.map(({ summary }) => summary?.level)).size).toBe(1);
    const bytes = inputs.reduce((sum, { summary }) => sum + (summary?.sizeBytes ?? 0), 0);
    if (inputs.length > 2) expect(bytes).toBeLessThanOrEqual(this.limits.inputBytesMax);
    this.objects = this.objects.filter((entry) => !inputs.includes(entry));
    const places = inputs.flatMap(({ summary }) => (summary === null ? [] : [summary.first, summary.last])).sort(comparePlaces);
    this.#putRun(outputLevel, places, bytes);
    this.written += bytes;
    return true;
  }

  /** Cuts what the inputs span at some of their places. */
  #putRun(level: number, places: readonly RecordPlace[], bytes: number): void {
    const [lowest, highest] = [places[0] ?? at(0), places.at(-1) ?? at(0)];
    const count = Math.max(1, Math.ceil(bytes / this.objectBytes));
    let first = lowest;
    for (let i = 0; i < count; i++) {
      const cut = places[Math.floor((places.length * (i + 1)) / count)];
      const isLast = i === count - 1 || cut === undefined || comparePlaces(cut, first) < 0 || comparePlaces(cut, highest) >= 0;
      const last = isLast ? highest : cut;
      this.add(level, first, last, Math.floor(bytes / count) * (this.chance.happens(0.2) ? 0.1 : 1));
      if (isLast) return;
      first = at(last.streamId, last.offset + 1);
    }
  }

  depths(): number[] {
    const levels = Map.groupBy(this.objects, ({ summary }) => summary?.level ?? 0);
    return [...levels].filter(([level]) => level > 0).map(([, entries]) => depthOf(entries.flatMap(({ summary }) => summary ?? [])));
  }

  levelCount(): number {
    return Math.max(...this.objects.map(({ summary }) => summary?.level ?? 0));
  }
}

describe("planning over any layout", () => {
  test("ends, leaves no place too deep and no level 0 too full, and rewrites each byte about once a level", () => {
    for (let seed = 1; seed <= 60; seed++) {
      const chance = new Chance(seed);
      const limits = { ...LIMITS, depthMax: 2 + chance.below(7), inputBytesMax: 200 + chance.below(3000), smallBytes: chance.below(40) };
      const model = new PlanModel(chance, limits, 100);
      const uploads = 20 + chance.below(300);
      let plans = 0;
      for (let upload = 0; upload < uploads; upload++) {
        const first = chance.below(1000);
        const width = chance.happens(0.5) ? chance.below(20) : chance.below(1000);
        model.add(0, at(first, upload * 10), at(first + width, upload * 10 + 9), 1 + chance.below(100));
        // Sometimes planning falls behind.
        if (chance.happens(0.9)) while (model.step()) plans += 1;
        expect(plans).toBeLessThan(uploads * 20);
      }
      while (model.step()) plans += 1;
      for (const depth of model.depths()) expect(depth).toBeLessThan(limits.depthMax);
      expect(model.objects.filter(({ summary }) => summary?.level === 0).length).toBeLessThan(limits.depthMax);
      expect(model.written / model.uploaded).toBeLessThanOrEqual(model.levelCount() + 1);
      // At the edges of runs places count twice, so that a level may need half as many objects of the one above it.
      if (limits.depthMax < 4) continue;
      expect(model.levelCount()).toBeLessThanOrEqual(2 + Math.ceil(Math.log(uploads) / Math.log(limits.depthMax / 2)));
    }
  });

  test("with the limits of the server, 5,000 uploads over all streams are rewritten less than five times each", () => {
    const model = new PlanModel(new Chance(5), { ...LIMITS, inputBytesMax: 1024, smallBytes: 8 }, 64);
    for (let upload = 0; upload < 5000; upload++) {
      model.add(0, at(1, upload), at(1000, upload), 1 + (upload % 16));
      while (model.step());
    }
    expect(model.written / model.uploaded).toBeLessThan(5);
    for (const depth of model.depths()) expect(depth).toBeLessThan(8);
  });
});

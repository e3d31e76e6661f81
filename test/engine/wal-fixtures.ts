/** Components of the WAL tests: a seeded random, a clock moved by hand, segments, and stores that misbehave on request. */
import { encodeSegmentHeader, encodeTombstone, reserveSegmentHeader, type SegmentMarks } from "../../src/engine/wal-segment-format.ts";
import type { WalStore } from "../../src/engine/wal-store.ts";
import { ByteWriter, utf8Encoder } from "../../src/lib/bytes.ts";
import type { Clock } from "../../src/lib/clock.ts";
import { isPicoError } from "../../src/lib/errors.ts";
import type { Random } from "../../src/lib/random.ts";
import { formatRegistration, type RegistrationName } from "../../src/lib/registration.ts";

export const OWNER: RegistrationName = { nodeId: 3, nodeEpoch: 1_760_000_000_000 };
export const TAKER: RegistrationName = { nodeId: 4, nodeEpoch: 1_760_000_000_500 };

/** xorshift32: enough for tests, and the same everywhere. */
export function seededRandom(seed: number): Random {
  let state = seed * 2654435761 + 1 || 1;
  const next = () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
  for (let warm = 0; warm < 8; warm++) next();
  return {
    bytes: (length) => Uint8Array.from({ length }, () => next() >>> 24),
    fraction: () => next() / 2 ** 32,
  };
}

/** A clock on which every wait is over at once, for what retries. */
export const hastyClock: Clock = {
  nowMs: () => 1_760_000_000_000,
  monotonicMs: () => 0,
  schedule(_delayMs, run) {
    let isCancelled = false;
    setImmediate(() => {
      if (!isCancelled) run();
    });
    return {
      cancel: () => {
        isCancelled = true;
      },
    };
  },
  soon: (run) => {
    setImmediate(run);
  },
};

/** A few turns of the event loop: everything that needs no more input has run. */
export async function turn(count = 4): Promise<void> {
  for (let at = 0; at < count; at++) await new Promise<void>((resolve) => setImmediate(resolve));
}

export async function until(condition: () => boolean): Promise<void> {
  for (let at = 0; !condition(); at++) {
    if (at > 100_000) throw new Error("the condition never came true");
    await turn(1);
  }
}

export function segmentBytes(number: number, body: string | Uint8Array, marks: Partial<SegmentMarks> = {}): Uint8Array {
  const out = new ByteWriter();
  reserveSegmentHeader(out);
  out.bytes(typeof body === "string" ? utf8Encoder.encode(body) : body);
  const bytes = out.copy();
  encodeSegmentHeader(bytes, { registration: OWNER, number, trimPoint: 0, durableNumber: 0, ...marks });
  return bytes;
}

export function tombstoneBytes(number: number, marks: Partial<SegmentMarks> = {}): Uint8Array {
  return encodeTombstone({ registration: OWNER, number, trimPoint: 0, durableNumber: number - 1, ...marks }, TAKER);
}

export async function codeOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    if (isPicoError(error)) return error.code;
    throw error;
  }
  return "none";
}

/** A WAL in memory. `beforeCreate` and `afterCreate` may wait or throw: the create did not, or did, take effect then. */
export class MemoryWal implements WalStore {
  readonly description = "memory";
  readonly kind: WalStore["kind"] = "object";
  readonly segments = new Map<string, Map<number, Uint8Array>>();
  beforeCreate: (number: number, bytes: Uint8Array) => Promise<void> | void = () => {};
  afterCreate: (number: number) => Promise<void> | void = () => {};
  beforeRead: (number: number) => Promise<void> | void = () => {};
  beforeList: () => Promise<void> | void = () => {};

  constructor(readonly inFlightMax = 2) {}

  of(registration: RegistrationName): Map<number, Uint8Array> {
    const key = formatRegistration(registration);
    const known = this.segments.get(key) ?? new Map<number, Uint8Array>();
    this.segments.set(key, known);
    return known;
  }

  async begin(): Promise<void> {}

  async registrations(): Promise<readonly RegistrationName[]> {
    return [...this.segments.keys()].map((key) => {
      const [nodeId, nodeEpoch] = key.split("@").map(Number);
      return { nodeId: nodeId ?? 0, nodeEpoch: nodeEpoch ?? 0 };
    });
  }

  registrationsWithSegments(): Promise<readonly RegistrationName[]> {
    return this.registrations();
  }

  async create(registration: RegistrationName, number: number, bytes: Uint8Array): Promise<"created" | "exists"> {
    await this.beforeCreate(number, bytes);
    const outcome = this.of(registration).has(number) ? "exists" : "created";
    if (outcome === "created") this.of(registration).set(number, bytes.slice());
    await this.afterCreate(number);
    return outcome;
  }

  async list(registration: RegistrationName, above: number): Promise<readonly number[]> {
    await this.beforeList();
    return [...this.of(registration).keys()].filter((number) => number > above).sort((left, right) => left - right);
  }

  async read(registration: RegistrationName, number: number): Promise<Uint8Array | null> {
    await this.beforeRead(number);
    return this.of(registration).get(number)?.slice() ?? null;
  }

  async persist(): Promise<void> {}

  async trim(): Promise<readonly []> {
    return [];
  }

  async close(): Promise<void> {}
}

/**
 * Taking over the WAL of a registration whose fence is applied (DESIGN 6): what is in it, whether it is
 * whole, and an end that its writer cannot pass.
 *
 * 1. *Survey*: list and read everything above the position *p* of the fence.
 * 2. *Damage*: a number that some readable segment knew to be durable or trimmable is missing or bad. The
 *    takeover stops there, before anything is written, and names it.
 * 3. *End*: without a tombstone the log ends below the first number above *p* that is missing or bad (a torn
 *    tail), and a tombstone that says so goes to the first missing number: the old writer, whose numbers
 *    have no gaps, meets it before any acknowledgement beyond. Refused: someone was faster; survey again.
 * 4. The answer is always taken from a survey that saw the end in place (FAULTS O2), and it is the word of
 *    the lowest tombstone. So running it again, or on several nodes at once, gives the same answer, even
 *    where a torn tail reads well another time.
 *
 * What lies above the end is void for ever.
 */
import { assert } from "../lib/assert.ts";
import { backOffMs } from "../lib/back-off.ts";
import { type Clock, sleep } from "../lib/clock.ts";
import { isPicoError, PicoError } from "../lib/errors.ts";
import {
  TAKEOVER_ATTEMPTS_MAX,
  TAKEOVER_KEPT_BYTES,
  TAKEOVER_READS_MAX,
  TAKEOVER_ROUNDS_MAX,
  WAL_BAD_READS_MAX,
  WAL_RETRY_MS_MAX,
  WAL_RETRY_MS_MIN,
} from "../lib/limits.ts";
import { mapConcurrently } from "../lib/map-concurrently.ts";
import type { Random } from "../lib/random.ts";
import { formatRegistration, type RegistrationName } from "../lib/registration.ts";
import { type DecodedSegment, decodeSegment, describeSegment, encodeTombstone } from "./wal-segment-format.ts";
import type { WalStore } from "./wal-store.ts";

export interface TakeoverOptions {
  readonly store: WalStore;
  readonly clock: Clock;
  readonly random: Random;
  /** Whose WAL. */
  readonly registration: RegistrationName;
  /** The committed position at the fence, where every recoverer replays from. */
  readonly position: number;
  /** Told of each segment that was read and looked at, and its size. */
  readonly onSurveyed?: (bytes: number) => void;
}

export interface ReplayedSegment {
  readonly number: number;
  /** The stored bytes, header included: entries keep referring to them. */
  readonly bytes: Uint8Array;
  readonly segment: DecodedSegment;
}

export interface TakenWal {
  /** The last number to replay; the position where there is none. */
  readonly lastNumber: number;
  /** The log has an end that its writer cannot pass. False only for what `inspectWal` saw before a takeover. */
  readonly isFenced: boolean;
  /**
   * The segments above the position up to the last number, in order, a few in memory at a time. Throws
   * `corrupt` where one does not read back as it did before, `storage_failed` where the store fails for long.
   */
  segments(): AsyncGenerator<ReplayedSegment>;
}

/**
 * Ends the WAL and says what it holds. Throws `corrupt` (facts `where`, `number`) for damage, before anything
 * is written; `incompatible` for segments of a newer program; `storage_failed`, `storage_full` or
 * `unknown_outcome` where the store fails for long: it may be called again then.
 */
export async function takeOverWal(options: TakeoverOptions & { readonly takenBy: RegistrationName }): Promise<TakenWal> {
  const survey = new Survey(options);
  for (let round = 0; round < TAKEOVER_ROUNDS_MAX; round++) {
    await survey.look();
    survey.assertWhole();
    const end = survey.findEnd();
    if (end.tombstoneGoesTo === null) return survey.result(end.lastNumber, true);
    await putTombstone(options, end.lastNumber, end.tombstoneGoesTo);
  }
  const { registration, store } = options;
  throw new PicoError("storage_failed", `${formatRegistration(registration)} keeps writing its WAL in ${store.description}; try again`, {
    registration: formatRegistration(registration),
  });
}

/**
 * What a takeover would replay, without writing anything: for a start while the disk is full. Valid only as
 * long as nobody writes. Errors as `takeOverWal`.
 */
export async function inspectWal(options: TakeoverOptions): Promise<TakenWal> {
  const survey = new Survey(options);
  await survey.look();
  survey.assertWhole();
  const end = survey.findEnd();
  return survey.result(end.lastNumber, end.tombstoneGoesTo === null);
}

interface SurveyedSegment {
  readonly checksum: bigint;
  readonly isTombstone: boolean;
  readonly durableNumber: number;
  /** Numbers up to this one were durable or trimmable when it was written. */
  readonly mark: number;
  readonly sizeBytes: number;
}

/** A reason where the bytes are no intact segment. */
type Surveyed = SurveyedSegment | { readonly damage: string };

class Survey {
  readonly #options: TakeoverOptions;
  readonly #found = new Map<number, Surveyed>();
  /** Bytes of segments from the survey to the replay, the lowest numbers first as far as they come. */
  readonly #kept = new Map<number, Uint8Array>();
  #keptBytes = 0;

  constructor(options: TakeoverOptions) {
    this.#options = options;
  }

  /**
   * What reads back from a local disk may be in the page cache only, where a failed sync of the dead left it
   * (FAULTS W2): a tombstone's word that it was readable vouches for nothing that a power cut takes. None of
   * it was ever acknowledged, and one node alone takes such a WAL over, so its end may come down.
   */
  get #isLocal(): boolean {
    return this.#options.store.kind === "local";
  }

  /** Lists again, and reads what was not seen before. */
  async look(): Promise<void> {
    const { store, registration, position } = this.#options;
    const numbers = await patiently(this.#options, () => store.list(registration, position));
    const unseen = numbers.filter((number) => !this.#found.has(number));
    for (const number of unseen) assert(number > position, "a WAL store lists above the number asked");
    await mapConcurrently(unseen, TAKEOVER_READS_MAX, (number) => this.#read(number));
  }

  async #read(number: number): Promise<void> {
    const { store, registration } = this.#options;
    for (let badReads = 1; ; badReads++) {
      const bytes = await patiently(this.#options, () => store.read(registration, number));
      // Gone since it was listed: the same as never listed.
      if (bytes === null) return;
      if (badReads === 1) this.#options.onSurveyed?.(bytes.length);
      try {
        const segment = decodeSegment(bytes, registration, number);
        this.#found.set(number, {
          checksum: segment.checksum,
          isTombstone: segment.tombstoneBy !== null,
          durableNumber: segment.durableNumber,
          mark: Math.max(segment.trimPoint, segment.durableNumber),
          sizeBytes: bytes.length,
        });
        this.#keep(number, bytes);
        return;
      } catch (error) {
        if (!isPicoError(error, "corrupt")) throw error;
        if (badReads < WAL_BAD_READS_MAX) continue;
        this.#found.set(number, { damage: error.message });
        return;
      }
    }
  }

  #keep(number: number, bytes: Uint8Array): void {
    if (this.#keptBytes + bytes.length > TAKEOVER_KEPT_BYTES) return;
    this.#keptBytes += bytes.length;
    this.#kept.set(number, bytes);
  }

  /** Throws `corrupt` for the first number that is missing, bad or a tombstone although a segment vouches for it. */
  assertWhole(): void {
    const { registration, position } = this.#options;
    let mark = position;
    let witness = position;
    for (const [number, found] of this.#found) {
      if ("damage" in found || found.mark <= mark || (found.isTombstone && this.#isLocal)) continue;
      mark = found.mark;
      witness = number;
    }
    for (let number = position + 1; number <= mark; number++) {
      const found = this.#found.get(number);
      if (found !== undefined && "checksum" in found && !found.isTombstone) continue;
      const where = describeSegment(registration, number);
      const what = found === undefined ? "is missing" : "damage" in found ? `cannot be read (${found.damage})` : "is a tombstone";
      throw new PicoError(
        "corrupt",
        `${where} in ${this.#options.store.description} ${what}, yet number ${witness} vouches for everything up to ${mark}; the WAL is damaged or the database is older than it`,
        { where, number, witness, mark, position },
      );
    }
  }

  /** Where the log ends, and the number that a tombstone must take to make it so; null where the end is in place. */
  findEnd(): { readonly lastNumber: number; readonly tombstoneGoesTo: number | null } {
    const { position } = this.#options;
    let number = position + 1;
    let firstBad: number | null = null;
    for (; ; number++) {
      const found = this.#found.get(number);
      if (found === undefined) break;
      if ("damage" in found) firstBad ??= number;
      else if (found.isTombstone) {
        const word = Math.max(position, found.durableNumber);
        return { lastNumber: firstBad !== null && this.#isLocal ? Math.min(word, firstBad - 1) : word, tombstoneGoesTo: null };
      }
    }
    return { lastNumber: (firstBad ?? number) - 1, tombstoneGoesTo: number };
  }

  result(lastNumber: number, isFenced: boolean): TakenWal {
    return { lastNumber, isFenced, segments: () => this.#replay(lastNumber) };
  }

  async *#replay(lastNumber: number): AsyncGenerator<ReplayedSegment> {
    const ahead: Promise<ReplayedSegment>[] = [];
    let next = this.#options.position + 1;
    let aheadBytes = 0;
    const sizeOf = (number: number) => {
      const found = this.#found.get(number);
      assert(found !== undefined && !("damage" in found), "every number to replay was surveyed");
      return found.sizeBytes;
    };
    for (let number = next; number <= lastNumber; number++) {
      // One is always under way; more only as far as they are small.
      while (next <= lastNumber && (ahead.length === 0 || (ahead.length < TAKEOVER_READS_MAX && aheadBytes < TAKEOVER_KEPT_BYTES / 2))) {
        aheadBytes += sizeOf(next);
        const reading = this.#readAgain(next++);
        // The failure is met when its turn comes, or never where the caller stops before.
        reading.catch(() => {});
        ahead.push(reading);
      }
      const replayed = await ahead.shift();
      assert(replayed !== undefined, "the next segment is being read");
      aheadBytes -= sizeOf(number);
      yield replayed;
    }
  }

  async #readAgain(number: number): Promise<ReplayedSegment> {
    const { store, registration } = this.#options;
    const found = this.#found.get(number);
    const kept = this.#kept.get(number);
    this.#kept.delete(number);
    for (let attempt = 0; attempt < WAL_BAD_READS_MAX; attempt++) {
      const bytes = kept ?? (await patiently(this.#options, () => store.read(registration, number)));
      if (bytes === null) break;
      try {
        const segment = decodeSegment(bytes, registration, number);
        if (found !== undefined && "checksum" in found && found.checksum === segment.checksum) return { number, bytes, segment };
      } catch (error) {
        if (!isPicoError(error, "corrupt")) throw error;
      }
    }
    const where = describeSegment(registration, number);
    throw new PicoError("corrupt", `${where} in ${store.description} no longer reads back as it did`, { where, number });
  }
}

/** Returns once the number is taken, by this tombstone or by whatever came first; the next survey tells. */
async function putTombstone(
  options: TakeoverOptions & { readonly takenBy: RegistrationName },
  lastNumber: number,
  number: number,
): Promise<void> {
  const { store, registration, position, takenBy } = options;
  const bytes = encodeTombstone({ registration, number, trimPoint: position, durableNumber: lastNumber }, takenBy);
  await patiently(options, () => store.create(registration, number, bytes));
}

/** Repeats a call to the store that failed or whose answer was lost; every call here can be repeated. */
async function patiently<T>(options: TakeoverOptions, call: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await call();
    } catch (error) {
      const isRetryable = isPicoError(error, "storage_failed") || isPicoError(error, "unknown_outcome");
      if (!isRetryable || attempt >= TAKEOVER_ATTEMPTS_MAX) throw error;
      await sleep(options.clock, backOffMs(options.random, attempt, WAL_RETRY_MS_MIN, WAL_RETRY_MS_MAX));
    }
  }
}

/**
 * The WAL in an object store: one object a segment, under `<cluster>/wal/<node>/<epoch>/<number>`, created
 * if absent and never written otherwise. Any node can take it over, by creating the next number itself.
 *
 * Invariants:
 * - The only write is a conditional create, the only delete a trim (FAULTS O3).
 * - A trim deletes no tombstone (FAULTS O1): it deletes what has another size, or what it read and found
 *   to be a segment; what it cannot tell stays, and is reported. An absence tells nothing (FAULTS S1).
 */
import { isPicoError, messageOf } from "../lib/errors.ts";
import { OBJECT_DELETE_KEYS_MAX, SEGMENTS_IN_FLIGHT_OBJECT } from "../lib/limits.ts";
import type { RegistrationName } from "../lib/registration.ts";
import { type ListedObject, listAll, type ObjectStore } from "../storage/object-store.ts";
import { decodeSegment, TOMBSTONE_BYTES } from "./wal-segment-format.ts";
import type { WalStore } from "./wal-store.ts";

/** Digits of the largest number that a double holds exactly. */
const NUMBER_DIGITS = 16;
/** A key that a segment may have; others below the prefix are not ours. */
const NUMBERED = /\/-?\d+\/\d+\/\d{16}$/;

interface Refusal {
  readonly number: number;
  readonly reason: string;
}

interface StoredNumber {
  readonly number: number;
  readonly object: ListedObject;
}

export class ObjectWal implements WalStore {
  readonly kind = "object";
  readonly description: string;
  readonly inFlightMax: number;
  readonly objects: ObjectStore;
  readonly #clusterPrefix: string;

  /** `cluster` is the first segment of every key. The store stays the caller's, to close. */
  constructor(store: ObjectStore, cluster: string, inFlightMax = SEGMENTS_IN_FLIGHT_OBJECT) {
    this.objects = store;
    this.#clusterPrefix = `${cluster}/wal/`;
    this.inFlightMax = inFlightMax;
    this.description = `${store.description}, below ${this.#clusterPrefix}`;
  }

  async begin(): Promise<void> {
    // Keys need no preparation.
  }

  create(registration: RegistrationName, number: number, bytes: Uint8Array): Promise<"created" | "exists"> {
    return this.objects.create(this.#key(registration, number), bytes);
  }

  registrations(): Promise<readonly RegistrationName[]> {
    return this.#registrationsWith(() => true);
  }

  registrationsWithSegments(): Promise<readonly RegistrationName[]> {
    return this.#registrationsWith(({ key, sizeBytes }) => sizeBytes !== TOMBSTONE_BYTES && NUMBERED.test(key));
  }

  async #registrationsWith(isMeant: (object: ListedObject) => boolean): Promise<readonly RegistrationName[]> {
    const names = new Map<string, RegistrationName>();
    for await (const object of listAll(this.objects, this.#clusterPrefix)) {
      if (!isMeant(object)) continue;
      const { key } = object;
      const match = /^(-?\d+)\/(\d+)\//.exec(key.slice(this.#clusterPrefix.length));
      if (match !== null) names.set(match[0], { nodeId: Number(match[1]), nodeEpoch: Number(match[2]) });
    }
    return [...names.values()];
  }

  async list(registration: RegistrationName, above: number): Promise<readonly number[]> {
    const stored = await this.#listStored(registration);
    return stored.map(({ number }) => number).filter((number) => number > above);
  }

  read(registration: RegistrationName, number: number): Promise<Uint8Array | null> {
    return this.objects.read(this.#key(registration, number));
  }

  async trim(registration: RegistrationName, upTo: number, mayDelete = async () => true): Promise<readonly Refusal[]> {
    const refused: Refusal[] = [];
    const numbers: number[] = [];
    for (const { number, object } of await this.#listStored(registration)) {
      if (number > upTo) break;
      const verdict = object.sizeBytes === TOMBSTONE_BYTES ? await this.#judge(registration, number) : "segment";
      if (verdict === "segment") numbers.push(number);
      else if (verdict !== "tombstone") refused.push(verdict);
    }
    for (let from = 0; from < numbers.length; from += OBJECT_DELETE_KEYS_MAX) {
      if (!(await mayDelete())) return [...refused, ...numbers.slice(from).map((number) => ({ number, reason: "removal is held back" }))];
      refused.push(...(await this.#delete(registration, numbers.slice(from, from + OBJECT_DELETE_KEYS_MAX))));
    }
    return refused;
  }

  async persist(): Promise<void> {
    // An object that was created is stored.
  }

  async close(): Promise<void> {
    // The object store is shared, and closed by its owner.
  }

  #prefix(registration: RegistrationName): string {
    return `${this.#clusterPrefix}${registration.nodeId}/${registration.nodeEpoch}/`;
  }

  #key(registration: RegistrationName, number: number): string {
    return `${this.#prefix(registration)}${String(number).padStart(NUMBER_DIGITS, "0")}`;
  }

  /** Ascending by number, whatever the order of the store. Keys that are not ours are left alone. */
  async #listStored(registration: RegistrationName): Promise<readonly StoredNumber[]> {
    const stored: StoredNumber[] = [];
    const prefix = this.#prefix(registration);
    for await (const object of listAll(this.objects, prefix)) {
      const number = Number(object.key.slice(prefix.length));
      if (Number.isSafeInteger(number) && number > 0 && this.#key(registration, number) === object.key) stored.push({ number, object });
    }
    return stored.sort((left, right) => left.number - right.number);
  }

  /** What an object of a tombstone's size is. */
  async #judge(registration: RegistrationName, number: number): Promise<"segment" | "tombstone" | Refusal> {
    try {
      const bytes = await this.read(registration, number);
      if (bytes === null) return { number, reason: "it is listed, and reads as absent" };
      return decodeSegment(bytes, registration, number).tombstoneBy === null ? "segment" : "tombstone";
    } catch (error) {
      if (!isPicoError(error)) throw error;
      return { number, reason: `it cannot be told from a tombstone: ${error.message}` };
    }
  }

  async #delete(registration: RegistrationName, numbers: readonly number[]): Promise<readonly Refusal[]> {
    const keys = numbers.map((number) => this.#key(registration, number));
    try {
      const outcomes = new Map((await this.objects.delete(keys)).map((outcome) => [outcome.key, outcome]));
      return numbers.flatMap((number, at) => {
        const outcome = outcomes.get(keys[at] ?? "");
        if (outcome?.deleted) return [];
        return { number, reason: outcome === undefined ? "the store did not say" : `${outcome.code}: ${outcome.message}` };
      });
    } catch (error) {
      if (!isPicoError(error)) throw error;
      return numbers.map((number) => ({ number, reason: messageOf(error) }));
    }
  }
}

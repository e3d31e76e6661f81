/**
 * Proof, before a node relies on a store, that it keeps what the contract promises: a key is created once.
 *
 * A key with a random name is created, created again with other bytes, read back and deleted. A store that takes the
 * second create cannot hold a WAL: of two writers of one segment both would win (FAULTS S2).
 *
 * Probes that were cut short leave their key. Each probe looks for such, and deletes those that are old and hold what a
 * probe writes; nothing else is ever deleted here. What the store does not delete is told, and fails no probe: a node
 * can serve with such a store, and its operator should know.
 */
import { equalBytes, utf8Encoder } from "../lib/bytes.ts";
import { messageOf, PicoError } from "../lib/errors.ts";
import { PROBE_LEFTOVER_AGE_MS, PROBE_LEFTOVERS_MAX } from "../lib/limits.ts";
import { type Random, randomHex } from "../lib/random.ts";
import type { ListedObject, ObjectStore } from "./object-store.ts";

const NAME = /^[0-9a-f]{32}$/;

/** A key of a probe that stays in the store. */
export interface UndeletedProbe {
  readonly key: string;
  /** In the store's own words. */
  readonly reason: string;
}

/**
 * Throws `settings` where the store lacks a feature, and as its calls do, deletes excepted: those that it did not take are
 * the result. `cluster` is the first segment of all keys.
 */
export async function probeObjectStore(store: ObjectStore, cluster: string, random: Random): Promise<readonly UndeletedProbe[]> {
  const prefix = `${cluster}/probe/`;
  const key = `${prefix}${randomHex(random, 16)}`;
  const undeleted: UndeletedProbe[] = [];
  try {
    const first = await store.create(key, contentsOf(key, 1));
    if (first !== "created") throw lacks(store, `a new key cannot be told from a taken one (${first})`);
    if ((await store.create(key, contentsOf(key, 2))) !== "exists") {
      throw lacks(store, "a create of a key that is taken was not refused (If-None-Match: *)");
    }
    const stored = await store.read(key);
    if (stored === null) throw lacks(store, "what was created is not there for the next read");
    if (!equalBytes(stored, contentsOf(key, 1))) throw lacks(store, "a create that was refused changed the object (If-None-Match: *)");
    undeleted.push(...(await remove(store, await findLeftovers(store, prefix, key))));
  } catch (error) {
    throw isMissingFeature(error) ? lacks(store, "conditional creates are not implemented (If-None-Match: *)", error) : error;
  } finally {
    // The name is random: whatever is there is this probe's. If it stays, a later probe removes it.
    undeleted.push(...(await remove(store, [key])));
  }
  return undeleted;
}

async function findLeftovers(store: ObjectStore, prefix: string, own: string): Promise<readonly string[]> {
  const { objects } = await store.list(prefix, { after: null, limit: PROBE_LEFTOVERS_MAX });
  // Ages by the store's clock alone; where more left-overs come first than one look takes, the next one goes on.
  const nowMs = objects.find(({ key }) => key === own)?.modifiedMs ?? Math.max(0, ...objects.map(({ modifiedMs }) => modifiedMs));
  const old: string[] = [];
  for (const object of objects) {
    const isOld = object.key !== own && nowMs - object.modifiedMs >= PROBE_LEFTOVER_AGE_MS;
    if (isOld && (await isOfProbe(store, prefix, object))) old.push(object.key);
  }
  return old;
}

/** Those of `keys` that stay. */
async function remove(store: ObjectStore, keys: readonly string[]): Promise<readonly UndeletedProbe[]> {
  if (keys.length === 0) return [];
  try {
    const outcomes = await store.delete(keys);
    return outcomes.flatMap((outcome) => (outcome.deleted ? [] : [{ key: outcome.key, reason: `${outcome.code}: ${outcome.message}` }]));
  } catch (error) {
    return keys.map((key) => ({ key, reason: messageOf(error) }));
  }
}

async function isOfProbe(store: ObjectStore, prefix: string, { key, sizeBytes }: ListedObject): Promise<boolean> {
  if (!NAME.test(key.slice(prefix.length)) || sizeBytes !== contentsOf(key, 1).length) return false;
  const stored = await store.read(key);
  return stored !== null && (equalBytes(stored, contentsOf(key, 1)) || equalBytes(stored, contentsOf(key, 2)));
}

function contentsOf(key: string, create: 1 | 2): Uint8Array {
  return utf8Encoder.encode(`pico probe of conditional creates, ${create} ${key}\n`);
}

/** Words of stores for a header that they do not know. */
function isMissingFeature(error: unknown): boolean {
  return error instanceof PicoError && (error.facts.status === 501 || error.facts.code === "NotImplemented");
}

function lacks(store: ObjectStore, what: string, cause?: unknown): PicoError {
  return new PicoError(
    "settings",
    `${store.description} cannot be used, it lacks a feature: ${what}; use a store that honours conditional creates`,
    { isStartup: true },
    cause,
  );
}

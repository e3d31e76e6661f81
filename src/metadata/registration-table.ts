/**
 * All registrations, and who owns today what each of them once owned.
 *
 * An end that names an heir moves the streams of the victim without touching one of them: a stream
 * keeps the name of the registration that acquired it, and the table follows the heirs from there. Each
 * restart adds a link, so a walk makes every registration on its way point at the chain's last one. That
 * shortcut is derived from the entries and never stored.
 *
 * Invariant: the heir of an ended registration never changes, so a shortcut never becomes wrong, only
 * longer: its target may end in turn.
 */
import { assert } from "../lib/assert.ts";
import type { RegistrationName } from "../lib/registration.ts";
import type { RegistrationEntry } from "./entries.ts";

interface Slot {
  readonly name: RegistrationName;
  /** Null for a name that was only mentioned, while rows are being loaded. */
  entry: RegistrationEntry | null;
  /** The heir, or one further along the chain; null where the chain ends here. */
  next: Slot | null;
  /** Latest end of the registrations from here to `next`, without `next` itself. */
  endedAtMs: number;
}

/** Where the chain of heirs leads. */
export interface ChainEnd {
  /** The last registration of the chain: live, fenced, or ended without an heir. */
  readonly last: RegistrationEntry;
  /** Latest end of any registration on the chain; null where none has ended. */
  readonly endedAtMs: number | null;
}

export class RegistrationTable {
  /** By node id, then by node epoch: no key string is built for a lookup. */
  readonly #slots = new Map<number, Map<number, Slot>>();

  get(name: RegistrationName): RegistrationEntry | null {
    return this.#slots.get(name.nodeId)?.get(name.nodeEpoch)?.entry ?? null;
  }

  *all(): Generator<RegistrationEntry> {
    for (const epochs of this.#slots.values()) {
      for (const slot of epochs.values()) if (slot.entry !== null) yield slot.entry;
    }
  }

  /** The registrations of one node id, in the order in which they were added. */
  *ofNode(nodeId: number): Generator<RegistrationEntry> {
    for (const slot of this.#slots.get(nodeId)?.values() ?? []) if (slot.entry !== null) yield slot.entry;
  }

  put(entry: RegistrationEntry): void {
    const slot = this.#slotOf(entry.name);
    slot.entry = entry;
    if (entry.state === "ended" && entry.heir !== null && slot.next === null) {
      slot.next = this.#slotOf(entry.heir);
      slot.endedAtMs = entry.endedAtMs ?? 0;
    }
  }

  /** One shared object a registration, so that a million streams do not hold a million equal names. */
  intern(name: RegistrationName): RegistrationName {
    return this.#slotOf(name).name;
  }

  /** Follows the heirs from `name`; null for an unknown registration. */
  chainEnd(name: RegistrationName): ChainEnd | null {
    const start = this.#slots.get(name.nodeId)?.get(name.nodeEpoch);
    if (start === undefined || start.entry === null) return null;
    const last = start.next === null ? start : shorten(start);
    assert(last.entry !== null, "an heir is a known registration");
    const ownEnd = last.entry.endedAtMs;
    if (last === start) return { last: last.entry, endedAtMs: ownEnd };
    return { last: last.entry, endedAtMs: Math.max(start.endedAtMs, ownEnd ?? 0) };
  }

  #slotOf(name: RegistrationName): Slot {
    let epochs = this.#slots.get(name.nodeId);
    if (epochs === undefined) {
      epochs = new Map();
      this.#slots.set(name.nodeId, epochs);
    }
    let slot = epochs.get(name.nodeEpoch);
    if (slot === undefined) {
      slot = { name, entry: null, next: null, endedAtMs: 0 };
      epochs.set(name.nodeEpoch, slot);
    }
    return slot;
  }
}

/** Makes every slot from `start` point at the chain's last one, which is returned. */
function shorten(start: Slot): Slot {
  const path: Slot[] = [];
  let last = start;
  while (last.next !== null) {
    path.push(last);
    last = last.next;
  }
  let endedAtMs = 0;
  for (const slot of path.reverse()) {
    endedAtMs = Math.max(endedAtMs, slot.endedAtMs);
    slot.endedAtMs = endedAtMs;
    slot.next = last;
  }
  return last;
}

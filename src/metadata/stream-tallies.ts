/**
 * What the state knows of its streams as a whole, kept up with each change, so that operators may ask as
 * often as they like however many streams there are: how many each registration owns as stored, which
 * streams are on their way to another node, and the forks of each source.
 */
import type { RegistrationName } from "../lib/registration.ts";
import type { StreamEntry } from "./entries.ts";

export class StreamTallies {
  /** By the shared name of the registration that the entry stores; ended ones included. */
  readonly #owned = new Map<RegistrationName, number>();
  readonly #transferring = new Set<number>();
  readonly #forks = new Map<number, Set<number>>();

  /** Takes in that `before` became `after`; null: the stream is new, or removed. */
  change(before: StreamEntry | null, after: StreamEntry | null): void {
    if (before?.owner !== after?.owner) {
      this.#count(before?.owner ?? null, -1);
      this.#count(after?.owner ?? null, 1);
    }
    if (after !== null && after.transfer !== null) this.#transferring.add(after.streamId);
    else if (before !== null && before.transfer !== null) this.#transferring.delete(before.streamId);
    if (before === null && after !== null && after.fork !== null) this.#addFork(after.fork.sourceId, after.streamId);
    if (after === null && before !== null && before.fork !== null) this.#removeFork(before.fork.sourceId, before.streamId);
  }

  owned(): Iterable<readonly [RegistrationName, number]> {
    return this.#owned;
  }

  transferring(): Iterable<number> {
    return this.#transferring;
  }

  /** Ids, in the order in which the forks were made or loaded. */
  forksOf(streamId: number): Iterable<number> {
    return this.#forks.get(streamId) ?? [];
  }

  #count(owner: RegistrationName | null, by: number): void {
    if (owner === null) return;
    const count = (this.#owned.get(owner) ?? 0) + by;
    if (count === 0) this.#owned.delete(owner);
    else this.#owned.set(owner, count);
  }

  #addFork(sourceId: number, forkId: number): void {
    const forks = this.#forks.get(sourceId);
    if (forks === undefined) this.#forks.set(sourceId, new Set([forkId]));
    else forks.add(forkId);
  }

  #removeFork(sourceId: number, forkId: number): void {
    const forks = this.#forks.get(sourceId);
    forks?.delete(forkId);
    if (forks?.size === 0) this.#forks.delete(sourceId);
  }
}

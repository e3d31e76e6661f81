/**
 * Stream ids without a look-up: the registration holds a reserved block of them, and reserves the next
 * one by command while half of it is left. Ids are unique for ever; what a dead registration did not use
 * is never used.
 */
import { PicoError } from "../lib/errors.ts";
import { STREAM_IDS_PER_RESERVATION } from "../lib/limits.ts";
import type { Metadata } from "../metadata/metadata.ts";

interface Block {
  next: number;
  readonly end: number;
}

export class StreamIds {
  readonly #blocks: Block[] = [];
  #isReserving = false;

  constructor(private readonly metadata: Metadata) {}

  /** A reserved block: `STREAM_IDS_PER_RESERVATION` ids from `first`. */
  add(first: number): void {
    this.#blocks.push({ next: first, end: first + STREAM_IDS_PER_RESERVATION });
  }

  /** The next id. Throws `unavailable` when the reserve is used up and the database does not answer. */
  take(): number {
    const block = this.#blocks[0];
    if (block === undefined) {
      this.#reserve();
      throw new PicoError("unavailable", "no stream ids are in reserve; try again", { retryAfterSeconds: 1 });
    }
    const streamId = block.next++;
    if (block.next === block.end) this.#blocks.shift();
    if (this.#blocks.length <= 1 && (this.#blocks[0]?.next ?? block.end) >= block.end - STREAM_IDS_PER_RESERVATION / 2) this.#reserve();
    return streamId;
  }

  #reserve(): void {
    if (this.#isReserving) return;
    this.#isReserving = true;
    this.metadata.propose({ type: "reserve_ids" }).outcome.then(
      (outcome) => {
        this.#isReserving = false;
        const first = outcome.applied ? outcome.facts.firstStreamId : undefined;
        if (first !== undefined) this.add(first);
      },
      () => {
        this.#isReserving = false;
      },
    );
  }
}

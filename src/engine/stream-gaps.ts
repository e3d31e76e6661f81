/**
 * What reads have learned about data objects, so that a reader of a long stream does not ask all of them
 * again for each page. An object never changes, so what was learned of it stays true.
 *
 * Bounded in number: what was learned longest ago is dropped, and learned again by whoever needs it.
 */
import { RecentMap } from "../lib/recent-map.ts";

/** What is known of one stream in one object. */
export interface StreamGap {
  /** The object holds nothing of the stream in `[from, to)`, */
  readonly from: number;
  readonly to: number;
  /** nor from here on. Infinite where that is not known. */
  readonly end: number;
  /** Records of the stream have come from it. */
  readonly isHolder: boolean;
}

const UNKNOWN: StreamGap = { from: 0, to: 0, end: Number.POSITIVE_INFINITY, isHolder: false };

export class StreamGaps {
  readonly #gaps: RecentMap<string, StreamGap>;

  constructor(countMax: number) {
    this.#gaps = new RecentMap(countMax);
  }

  get count(): number {
    return this.#gaps.size;
  }

  /** Null where nothing is known. */
  find(objectId: number, streamId: number): StreamGap | null {
    return this.#gaps.get(keyOf(objectId, streamId)) ?? null;
  }

  /** The object may hold the stream; nothing more is known. */
  noteCandidate(objectId: number, streamId: number): void {
    this.#keep(objectId, streamId, {});
  }

  /** The object holds nothing of the stream in `[from, to)`; an infinite `to`: nor behind. Of two gaps that do not touch the newer one is kept. */
  noteGap(objectId: number, streamId: number, from: number, to: number): void {
    const known = this.find(objectId, streamId) ?? UNKNOWN;
    if (to === Number.POSITIVE_INFINITY) this.#keep(objectId, streamId, { end: Math.min(known.end, from) });
    else if (known.from <= to && from <= known.to) {
      this.#keep(objectId, streamId, { from: Math.min(known.from, from), to: Math.max(known.to, to) });
    } else this.#keep(objectId, streamId, { from, to });
  }

  noteHolder(objectId: number, streamId: number): void {
    this.#keep(objectId, streamId, { isHolder: true });
  }

  #keep(objectId: number, streamId: number, facts: Partial<StreamGap>): void {
    const key = keyOf(objectId, streamId);
    this.#gaps.set(key, { ...(this.#gaps.get(key) ?? UNKNOWN), ...facts });
  }
}

function keyOf(objectId: number, streamId: number): string {
  return `${objectId}:${streamId}`;
}

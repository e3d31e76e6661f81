/**
 * When streams are due to expire: a binary min-heap of (deadline, stream id). Entries are hints: a touch
 * moves a stream's deadline without touching the heap, and whoever takes an entry out compares it with
 * the deadline that holds now and puts it back if that is later. So a touch costs nothing, and each
 * stream has at most one entry for as long as its owner keeps it so.
 */
export interface Deadline {
  readonly atMs: number;
  readonly streamId: number;
}

export class DeadlineHeap {
  readonly #items: Deadline[] = [];

  get size(): number {
    return this.#items.length;
  }

  /** The earliest entry, left in; null where there is none. */
  peek(): Deadline | null {
    return this.#items[0] ?? null;
  }

  push(deadline: Deadline): void {
    const items = this.#items;
    let at = items.length;
    items.push(deadline);
    while (at > 0) {
      const parentAt = (at - 1) >> 1;
      const parent = items[parentAt];
      if (parent === undefined || parent.atMs <= deadline.atMs) break;
      items[at] = parent;
      at = parentAt;
    }
    items[at] = deadline;
  }

  /** Takes the earliest entry out if it is due at `nowMs`. */
  popDue(nowMs: number): Deadline | null {
    const first = this.#items[0];
    if (first === undefined || first.atMs > nowMs) return null;
    const last = this.#items.pop();
    if (last !== undefined && this.#items.length > 0) this.#sink(last);
    return first;
  }

  /** Drops the entries that `isKept` refuses. */
  retain(isKept: (deadline: Deadline) => boolean): void {
    const kept = this.#items.filter(isKept);
    this.#items.length = 0;
    for (const deadline of kept) this.push(deadline);
  }

  /** Puts `item` at the root and lets it sink to its place. */
  #sink(item: Deadline): void {
    const items = this.#items;
    let at = 0;
    for (;;) {
      let childAt = 2 * at + 1;
      let child = items[childAt];
      if (child === undefined) break;
      const right = items[childAt + 1];
      if (right !== undefined && right.atMs < child.atMs) {
        childAt += 1;
        child = right;
      }
      if (child.atMs >= item.atMs) break;
      items[at] = child;
      at = childAt;
    }
    items[at] = item;
  }
}

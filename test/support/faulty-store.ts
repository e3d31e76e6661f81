/** A store in memory that a test may make refuse, forget and hide; each call is noted. */
import { PicoError } from "../../src/lib/errors.ts";
import { MemoryObjectStore } from "../../src/storage/memory-object-store.ts";
import type { DeleteOutcome, ListPage, ObjectStore } from "../../src/storage/object-store.ts";
import { ManualClock } from "./manual-clock.ts";

export class FaultyStore implements ObjectStore {
  readonly description = "faulty:";
  /** `create KEY`, `read KEY`, `size KEY`, `list PREFIX`, `delete KEY,KEY`. */
  readonly calls: string[] = [];
  /** Runs before each read has its effect. */
  onRead: (key: string) => Promise<void> | void = () => {};
  /** Runs before each create, and may throw. */
  onCreate: (key: string) => Promise<void> | void = () => {};
  /** Runs before each delete, and may throw. */
  onDelete: (keys: readonly string[]) => Promise<void> | void = () => {};
  /** Runs behind each create and delete that took effect, and may throw: the answer is lost. */
  onDone: (call: "create" | "delete") => void = () => {};
  /** Runs before each page of a list, and may throw. */
  onList: (prefix: string) => Promise<void> | void = () => {};
  /** The store's word for a key that it does not delete; null: it does. */
  refusal: (key: string) => string | null = () => null;
  /** Whether a read does not find the key, though it is there. */
  hides: (key: string) => boolean = () => false;
  reversesLists = false;
  readonly inner: MemoryObjectStore;

  constructor(clock = new ManualClock()) {
    this.inner = new MemoryObjectStore(clock);
  }

  async create(key: string, bytes: Uint8Array): Promise<"created" | "exists"> {
    this.calls.push(`create ${key}`);
    await this.onCreate(key);
    const outcome = await this.inner.create(key, bytes);
    this.onDone("create");
    return outcome;
  }

  async read(key: string, range?: { readonly start: number; readonly end: number }): Promise<Uint8Array | null> {
    this.calls.push(`read ${key}`);
    await this.onRead(key);
    return this.hides(key) ? null : this.inner.read(key, range);
  }

  async size(key: string): Promise<number | null> {
    this.calls.push(`size ${key}`);
    return this.hides(key) ? null : this.inner.size(key);
  }

  async list(prefix: string, options: { readonly after: string | null; readonly limit: number }): Promise<ListPage> {
    this.calls.push(`list ${prefix}`);
    await this.onList(prefix);
    const page = await this.inner.list(prefix, options);
    return this.reversesLists ? { ...page, objects: [...page.objects].reverse() } : page;
  }

  async delete(keys: readonly string[]): Promise<readonly DeleteOutcome[]> {
    this.calls.push(`delete ${keys.join()}`);
    await this.onDelete(keys);
    const outcomes: DeleteOutcome[] = [];
    for (const key of keys) {
      const code = this.refusal(key);
      if (code === null) outcomes.push(...(await this.inner.delete([key])));
      else outcomes.push({ key, deleted: false, code, message: `${key} is refused` });
    }
    this.onDone("delete");
    return outcomes;
  }

  async close(): Promise<void> {}

  /** All keys that are there. */
  async keys(prefix = ""): Promise<string[]> {
    const page = await this.inner.list(prefix, { after: null, limit: 1000 });
    return page.objects.map(({ key }) => key);
  }

  /** The calls since the last time, without what they named. */
  takeCalls(): string[] {
    return this.calls.splice(0).map((call) => call.split(" ")[0] ?? "");
  }
}

export function lostAnswer(): PicoError {
  return new PicoError("unknown_outcome", "the answer was lost");
}

export function failure(): PicoError {
  return new PicoError("storage_failed", "the store is away");
}

/** A memory store that counts what it is asked for, and can take its time over data objects. */
import { type Clock, sleep } from "../../src/lib/clock.ts";
import { MemoryObjectStore } from "../../src/storage/memory-object-store.ts";

export class CountingStore extends MemoryObjectStore {
  creates = 0;
  bytesCreated = 0;
  lists = 0;
  deletes = 0;
  /** How often each range of each data object was read. */
  readonly reads = new Map<string, number>();
  /** What creates of data objects get through in a second; infinite: no delay. */
  bytesPerSecond = Number.POSITIVE_INFINITY;

  constructor(private readonly clockOfStore: Clock) {
    super(clockOfStore);
  }

  override async create(key: string, bytes: Uint8Array): Promise<"created" | "exists"> {
    this.creates += 1;
    this.bytesCreated += bytes.length;
    if (!key.includes("/wal/") && this.bytesPerSecond !== Number.POSITIVE_INFINITY) {
      await sleep(this.clockOfStore, (bytes.length / this.bytesPerSecond) * 1000);
    }
    return super.create(key, bytes);
  }

  override read(key: string, range?: { readonly start: number; readonly end: number }): Promise<Uint8Array | null> {
    if (!key.includes("/wal/")) {
      const what = `${key} ${range?.start}-${range?.end}`;
      this.reads.set(what, (this.reads.get(what) ?? 0) + 1);
    }
    return super.read(key, range);
  }

  override list(...words: Parameters<MemoryObjectStore["list"]>): ReturnType<MemoryObjectStore["list"]> {
    this.lists += 1;
    return super.list(...words);
  }

  override delete(keys: readonly string[]): ReturnType<MemoryObjectStore["delete"]> {
    this.deletes += 1;
    return super.delete(keys);
  }
}

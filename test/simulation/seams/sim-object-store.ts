/** `ObjectStore` of one process over the simulated bucket: each call goes through a `ServiceLink`. */
import type { DeleteOutcome, ListPage, ObjectStore } from "../../../src/storage/object-store.ts";
import type { ServiceLink } from "./service-link.ts";
import type { SimBucket } from "./sim-bucket.ts";

/** Of a key of a delete being refused alone, in a storm. */
const DELETE_REFUSED_CHANCE = 0.05;
/** Of a create that arrives once more, as the earlier attempt of a client that repeats its requests; and when at the latest. */
const GHOST_CHANCE = 0.03;
const GHOST_MS_MAX = 240_000;
/** Of a list page being cut shorter than asked for; real stores do that. */
const SHORT_PAGE_CHANCE = 0.3;

export class SimObjectStore implements ObjectStore {
  readonly description = "sim://bucket";

  constructor(
    private readonly bucket: SimBucket,
    private readonly link: ServiceLink,
  ) {}

  create(key: string, bytes: Uint8Array): Promise<"created" | "exists"> {
    // The caller may reuse its buffer as soon as it has the answer, or after giving up on it.
    const sent = bytes.slice();
    this.#repeatLater(key, sent);
    return this.link.call(`create ${key}`, "write", () => this.bucket.create(key, sent));
  }

  read(key: string, range?: { readonly start: number; readonly end: number }): Promise<Uint8Array | null> {
    return this.link.call(`read ${key}`, "read", () => this.bucket.read(key, range));
  }

  size(key: string): Promise<number | null> {
    return this.link.call(`size ${key}`, "read", () => this.bucket.size(key));
  }

  list(prefix: string, options: { readonly after: string | null; readonly limit: number }): Promise<ListPage> {
    return this.link.call(`list ${prefix}`, "read", () => {
      const { prng, world } = this.link.service;
      const isShort = world.faultsOn && options.limit > 1 && prng.chance(SHORT_PAGE_CHANCE);
      return this.bucket.list(prefix, options.after, isShort ? prng.between(1, options.limit) : options.limit);
    });
  }

  delete(keys: readonly string[]): Promise<readonly DeleteOutcome[]> {
    const sent = [...keys];
    return this.link.call(`delete ${sent.length} keys`, "write", () => {
      const { prng, world } = this.link.service;
      return this.bucket.delete(sent, () => world.faultsOn && prng.chance(DELETE_REFUSED_CHANCE));
    });
  }

  #repeatLater(key: string, sent: Uint8Array): void {
    const { prng, world } = this.link.service;
    if (!world.faultsOn || !prng.chance(GHOST_CHANCE)) return;
    world.scheduler.schedule(prng.fraction() * GHOST_MS_MAX, `create ${key} arrives again`, () => {
      if (this.bucket.isFull || this.bucket.isRefused(key) || this.bucket.create(key, sent) === "exists") return;
      world.trace.count("fault store ghost create");
    });
  }

  async close(): Promise<void> {
    this.link.close();
  }
}

/**
 * The object store seam: immutable objects under keys. Implementations: `memory`, `file`, and S3.
 *
 * The contract (one suite in `test/storage` runs against every implementation):
 * - An object is created once and never overwritten; there is no unconditional write.
 * - `create` resolves only when the object would survive a power cut, directory entries included.
 * - After `create` resolved, every later `read`, `size` and `list` sees the object, whole.
 * - A call that cannot tell whether it took effect rejects with `unknown_outcome`; one that certainly
 *   did not rejects with `storage_failed` (or `storage_full`). Nothing else is thrown, and no call hangs:
 *   each has a time-out.
 * - Keys are `/`-separated segments of `[A-Za-z0-9._-]`, at most 512 bytes; no segment is `.` or `..`.
 *   Nobody uses a key that another one continues behind a `/` (`a` beside `a/b`): some stores refuse it.
 */

export interface ListedObject {
  readonly key: string;
  readonly sizeBytes: number;
  /** When the store took it, by the store's clock, in ms since 1970. */
  readonly modifiedMs: number;
}

export interface ListPage {
  /** In ascending byte order of keys. */
  readonly objects: readonly ListedObject[];
  /** Pass as `after` for the next page; null where this page is the last. Never inferred from the page's length. */
  readonly next: string | null;
}

/** What became of one key of a delete. */
export type DeleteOutcome =
  | { readonly key: string; readonly deleted: true }
  /** Refused or unknown: the object must be taken as still there. `code` is the store's own word. */
  | { readonly key: string; readonly deleted: false; readonly code: string; readonly message: string };

export type DeleteRefusal = Extract<DeleteOutcome, { readonly deleted: false }>;

export interface ObjectStore {
  /** For messages and logs, without secrets: `file:///var/lib/pico/objects`. */
  readonly description: string;

  /** Creates the object if the key is absent; `exists` leaves what is there untouched. */
  create(key: string, bytes: Uint8Array): Promise<"created" | "exists">;

  /**
   * Reads the whole object, or the bytes `[start, end)` of it clipped to its size. Null where the key
   * is absent. The result is the caller's own.
   */
  read(key: string, range?: { readonly start: number; readonly end: number }): Promise<Uint8Array | null>;

  /** Size in bytes; null where the key is absent. */
  size(key: string): Promise<number | null>;

  /** Keys that begin with `prefix` and are greater than `after`, at most `limit` (1 to 1000). */
  list(prefix: string, options: { readonly after: string | null; readonly limit: number }): Promise<ListPage>;

  /** Deletes up to 1000 keys; an absent key counts as deleted. One outcome a key, in the order given. */
  delete(keys: readonly string[]): Promise<readonly DeleteOutcome[]>;

  /** Releases connections and handles. Calls under way may reject. */
  close(): Promise<void>;
}

/** Every key under `prefix`, page by page. An error of any page fails the whole walk. */
export async function* listAll(store: Pick<ObjectStore, "list">, prefix: string, pageSize = 1000): AsyncGenerator<ListedObject> {
  let after: string | null = null;
  do {
    const page: ListPage = await store.list(prefix, { after, limit: pageSize });
    yield* page.objects;
    after = page.next;
  } while (after !== null);
}

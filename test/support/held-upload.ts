/** Holds back what a store is given of data objects, until it is let go. All else goes through. */
import type { ObjectStore } from "../../src/storage/object-store.ts";

export interface HeldUpload {
  /** Resolves when the first object is given. */
  readonly begun: Promise<void>;
  /** For ever: what comes later goes through. */
  letGo(): void;
}

export function holdUpload(store: Pick<ObjectStore, "create">): HeldUpload {
  const begun = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const create = store.create.bind(store);
  store.create = async (key, bytes) => {
    if (key.includes("/data/")) {
      begun.resolve();
      await gate.promise;
    }
    return create(key, bytes);
  };
  return { begun: begun.promise, letGo: gate.resolve };
}

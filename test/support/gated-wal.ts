/** A WAL store whose creates can be held back, or made to fail. All else goes through. */
import type { WalStore } from "../../src/engine/wal-store.ts";
import type { RegistrationName } from "../../src/lib/registration.ts";
import { WalStoreWrapper } from "../simulation/variants/wal-store-wrapper.ts";

export class GatedWal extends WalStoreWrapper {
  /** Creates that were asked for. */
  creates = 0;
  /** Thrown by every create that gets through the gate. */
  failure: Error | null = null;
  #gate: PromiseWithResolvers<void> | null = null;

  hold(): void {
    this.#gate ??= Promise.withResolvers();
  }

  release(): void {
    this.#gate?.resolve();
    this.#gate = null;
  }

  override async create(registration: RegistrationName, number: number, bytes: Uint8Array): Promise<"created" | "exists"> {
    this.creates += 1;
    await this.#gate?.promise;
    if (this.failure !== null) throw this.failure;
    return this.inner.create(registration, number, bytes);
  }
}

/** The option of a test node that puts a gate in place, and the gate of the node built last. */
export function gate(): { readonly wal: (inner: WalStore) => WalStore; readonly gated: () => GatedWal } {
  let gated: GatedWal | null = null;
  return {
    wal: (inner) => {
      gated = new GatedWal(inner);
      return gated;
    },
    gated: () => {
      if (gated === null) throw new Error("no node was built yet");
      return gated;
    },
  };
}

/** Makes the header of a segment anew for each further try of its number, so that the bytes differ. */
import { decodeSegment, encodeSegmentHeader, isTombstone } from "../../../src/engine/wal-segment-format.ts";
import { formatRegistration, type RegistrationName } from "../../../src/lib/registration.ts";
import { WalStoreWrapper } from "./wal-store-wrapper.ts";

export class OtherBytesOnRetry extends WalStoreWrapper {
  readonly #tries = new Map<string, number>();

  override create(registration: RegistrationName, number: number, bytes: Uint8Array): Promise<"created" | "exists"> {
    const key = `${formatRegistration(registration)} ${number}`;
    const tries = (this.#tries.get(key) ?? 0) + 1;
    this.#tries.set(key, tries);
    if (tries === 1 || isTombstone(bytes)) return this.inner.create(registration, number, bytes);
    const marks = decodeSegment(bytes, registration, number);
    const changed = bytes.slice();
    // Marks that say less are as true as the first ones.
    encodeSegmentHeader(changed, { registration, number, trimPoint: 0, durableNumber: Math.max(0, marks.durableNumber - tries) });
    return this.inner.create(registration, number, changed);
  }
}

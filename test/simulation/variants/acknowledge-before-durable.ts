/** Says that a segment is created as soon as it was handed over; what becomes of it nobody hears. */
import { isTombstone } from "../../../src/engine/wal-segment-format.ts";
import type { RegistrationName } from "../../../src/lib/registration.ts";
import { WalStoreWrapper } from "./wal-store-wrapper.ts";

export class AcknowledgeBeforeDurable extends WalStoreWrapper {
  override async create(registration: RegistrationName, number: number, bytes: Uint8Array): Promise<"created" | "exists"> {
    if (isTombstone(bytes)) return this.inner.create(registration, number, bytes);
    this.inner.create(registration, number, bytes.slice()).catch(() => {});
    return "created";
  }
}

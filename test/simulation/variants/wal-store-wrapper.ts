/** A WAL store that passes everything on; broken ones replace a method. */
import type { WalStore } from "../../../src/engine/wal-store.ts";
import type { RegistrationName } from "../../../src/lib/registration.ts";

export abstract class WalStoreWrapper implements WalStore {
  constructor(protected readonly inner: WalStore) {}

  get description(): string {
    return this.inner.description;
  }

  get kind(): WalStore["kind"] {
    return this.inner.kind;
  }

  get inFlightMax(): number {
    return this.inner.inFlightMax;
  }

  begin(registration: RegistrationName): Promise<void> {
    return this.inner.begin(registration);
  }

  registrations(): ReturnType<WalStore["registrations"]> {
    return this.inner.registrations();
  }

  registrationsWithSegments(): ReturnType<WalStore["registrationsWithSegments"]> {
    return this.inner.registrationsWithSegments();
  }

  create(registration: RegistrationName, number: number, bytes: Uint8Array): Promise<"created" | "exists"> {
    return this.inner.create(registration, number, bytes);
  }

  list(registration: RegistrationName, above: number): Promise<readonly number[]> {
    return this.inner.list(registration, above);
  }

  read(registration: RegistrationName, number: number): Promise<Uint8Array | null> {
    return this.inner.read(registration, number);
  }

  persist(registration: RegistrationName): Promise<void> {
    return this.inner.persist(registration);
  }

  trim(...[registration, upTo, mayDelete]: Parameters<WalStore["trim"]>): ReturnType<WalStore["trim"]> {
    return this.inner.trim(registration, upTo, mayDelete);
  }

  close(): Promise<void> {
    return this.inner.close();
  }
}

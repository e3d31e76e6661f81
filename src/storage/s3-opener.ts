import type { S3ObjectStore, S3ObjectStoreOptions } from "./s3-object-store.ts";

/**
 * Opens a store in a bucket. The vendor's SDK is loaded by the first call: it would make each start of the program, that
 * of every command included, a third longer.
 */
export async function openS3ObjectStore(options: S3ObjectStoreOptions): Promise<S3ObjectStore> {
  const { S3ObjectStore } = await import("./s3-object-store.ts");
  return S3ObjectStore.open(options);
}

/** The contract of object stores on a real MinIO. */
import { expect, test } from "bun:test";
import type { MinioServer } from "../../scripts/minio.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { S3ObjectStore } from "../../src/storage/s3-object-store.ts";
import type { S3Place } from "../../src/storage/s3-place.ts";
import { describeOnMinio } from "../support/minio.ts";
import { silentLog } from "../support/silent-log.ts";
import { describeObjectStore } from "./object-store-contract.ts";

function placeOn(server: MinioServer, bucket: string, prefix = ""): S3Place {
  return { bucket, prefix, region: null, endpoint: server.endpoint, isPathStyle: null, isExpress: false, encryption: null };
}

function openStore(place: S3Place): Promise<S3ObjectStore> {
  return S3ObjectStore.open({ place, clock: systemClock, random: systemRandom, log: silentLog });
}

describeOnMinio("S3 on MinIO", (server) => {
  let buckets = 0;
  const newBucket = async (): Promise<string> => {
    buckets += 1;
    await server().makeBucket(`bucket-${buckets}`);
    return `bucket-${buckets}`;
  };

  describeObjectStore("a prefix in a bucket", async () => {
    const place = placeOn(server(), await newBucket(), "some/prefix/");
    const store = await openStore(place);
    const twin = await openStore(place);
    return {
      store,
      twin,
      dispose: async () => {
        await store.close();
        await twin.close();
      },
    };
  });

  test("prefixes of one bucket do not see each other", async () => {
    const bucket = await newBucket();
    const [left, right] = [await openStore(placeOn(server(), bucket, "left/")), await openStore(placeOn(server(), bucket, "right/"))];
    await left.create("a/b", new Uint8Array([1]));
    expect(await right.read("a/b")).toBeNull();
    expect(await right.list("", { after: null, limit: 10 })).toEqual({ objects: [], next: null });
    expect(await (await openStore(placeOn(server(), bucket))).size("left/a/b")).toBe(1);
  });
});

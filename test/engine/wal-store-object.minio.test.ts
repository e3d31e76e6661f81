/** The WAL in a bucket of a real MinIO. */
import { ObjectWal } from "../../src/engine/wal-store-object.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { S3ObjectStore } from "../../src/storage/s3-object-store.ts";
import { describeOnMinio } from "../support/minio.ts";
import { silentLog } from "../support/silent-log.ts";
import { describeWalStore } from "./wal-store-contract.ts";

describeOnMinio("WAL on MinIO", (server) => {
  let places = 0;
  describeWalStore(
    "object WAL over S3",
    async () => {
      places += 1;
      await server().makeBucket(`wal-${places}`);
      const place = {
        bucket: `wal-${places}`,
        prefix: "",
        region: null,
        endpoint: server().endpoint,
        isPathStyle: null,
        isExpress: false,
        encryption: null,
      };
      const store = await S3ObjectStore.open({ place, clock: systemClock, random: systemRandom, log: silentLog });
      return { open: async () => new ObjectWal(store, "test"), dispose: () => store.close() };
    },
    64 * 1024,
  );
});

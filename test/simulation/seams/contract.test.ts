/** The simulated seams, without faults, keep the contracts that the real ones keep. */
import { LocalDiskWal } from "../../../src/engine/wal-store-local.ts";
import { ObjectWal } from "../../../src/engine/wal-store-object.ts";
import { describeWalStore } from "../../engine/wal-store-contract.ts";
import { CONTRACT_IDENTITY, describeSqlStore } from "../../sql/sql-store-contract.ts";
import { describeObjectStore } from "../../storage/object-store-contract.ts";
import { Prng } from "../world/prng.ts";
import { SimProcess } from "../world/process.ts";
import { World } from "../world/world.ts";
import { CALM_DISK } from "./disk-weather.ts";
import { ServiceLink, SimService } from "./service-link.ts";
import { SimBucket } from "./sim-bucket.ts";
import { SimDatabase } from "./sim-database.ts";
import { SimDisk } from "./sim-disk.ts";
import { SimLocalDirectory } from "./sim-local-directory.ts";
import { SimObjectStore } from "./sim-object-store.ts";
import { SimSqlStore } from "./sim-sql-store.ts";
import { CALM } from "./weather.ts";

/** A world whose events run whenever the real event loop turns, for tests that wait for real promises. */
function turningWorld(): { readonly world: World; readonly end: () => void } {
  const world = new World("contract");
  let isEnded = false;
  const turn = (): void => {
    while (world.scheduler.step());
    if (!isEnded) setImmediate(turn);
  };
  setImmediate(turn);
  return {
    world,
    end: () => {
      isEnded = true;
    },
  };
}

let lives = 0;
function newProcess(world: World): SimProcess {
  lives += 1;
  return new SimProcess(`life ${lives}`, world.scheduler);
}

describeObjectStore("simulated bucket", async () => {
  const { world, end } = turningWorld();
  const service = new SimService(world, "store", CALM, "storage_failed");
  const bucket = new SimBucket(world);
  const open = () => new SimObjectStore(bucket, new ServiceLink(service, newProcess(world), 1));
  return { store: open(), twin: open(), dispose: async () => end() };
});

describeSqlStore("simulated database", async () => {
  const { world, end } = turningWorld();
  const service = new SimService(world, "database", CALM, "database_failed");
  const database = new SimDatabase(world);
  const open = async () => {
    const process = newProcess(world);
    const store = new SimSqlStore(database, new ServiceLink(service, process, 1), process);
    await store.open(CONTRACT_IDENTITY);
    return store;
  };
  return {
    store: await open(),
    twin: await open(),
    dispose: async () => {
      end();
      database.close();
    },
  };
});

const FILE_BYTES = 8 * 4096;

describeWalStore(
  "local WAL over a simulated directory",
  async () => {
    const { world, end } = turningWorld();
    const disk = new SimDisk("host-1", world.prng.branch("disk"));
    const random = new Prng("local WAL");
    return {
      open: () => {
        const directory = new SimLocalDirectory(world, newProcess(world), disk, CALM_DISK);
        return LocalDiskWal.open({ directory, random, firstFileBytes: 4 * 4096, fileBytes: FILE_BYTES });
      },
      dispose: async () => end(),
    };
  },
  FILE_BYTES,
);

describeWalStore(
  "object WAL over the simulated bucket",
  async () => {
    const { world, end } = turningWorld();
    const service = new SimService(world, "store", CALM, "storage_failed");
    const bucket = new SimBucket(world);
    return {
      open: async () => new ObjectWal(new SimObjectStore(bucket, new ServiceLink(service, newProcess(world), 1)), "sim"),
      dispose: async () => end(),
    };
  },
  FILE_BYTES,
);

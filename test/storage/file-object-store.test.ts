import { systemClock } from "../../src/lib/clock.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { FileObjectStore } from "../../src/storage/file-object-store.ts";
import { describeObjectStore } from "./object-store-contract.ts";
import { makeTemporaryFolder } from "./temporary-folder.ts";

describeObjectStore("file", async () => {
  const folder = await makeTemporaryFolder();
  const options = { path: `${folder.path}/deep/objects`, clock: systemClock, random: systemRandom };
  const store = await FileObjectStore.open(options);
  const twin = await FileObjectStore.open(options);
  return {
    store,
    twin,
    dispose: async () => {
      await store.close();
      await twin.close();
      await folder[Symbol.asyncDispose]();
    },
  };
});

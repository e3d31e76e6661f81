import { systemClock } from "../../src/lib/clock.ts";
import { MemoryObjectStore } from "../../src/storage/memory-object-store.ts";
import { describeObjectStore } from "./object-store-contract.ts";

describeObjectStore("memory", async () => {
  const store = new MemoryObjectStore(systemClock);
  return { store, twin: store, dispose: () => store.close() };
});

/** Run as a process of its own: opens the file and inserts batches of one node; prints the indexes it got. */
import { systemClock } from "../../src/lib/clock.ts";
import { SqliteStore } from "../../src/sql/sqlite-store.ts";

const [path = "", nodeId = "0", count = "0"] = process.argv.slice(2);
const store = new SqliteStore({ path, clock: systemClock });
await store.open("d".repeat(32));
const indexes: number[] = [];
for (let batch = 0; batch < Number(count); batch++) {
  const outcome = await store.insertBatch({
    rowId: `${nodeId}${String(batch).padStart(31, "0")}`,
    proposer: { nodeId: Number(nodeId), nodeEpoch: 1 },
    batch,
    payload: new Uint8Array(100),
    fences: [],
  });
  if (!outcome.inserted) throw new Error(`batch ${batch} was not inserted`);
  indexes.push(outcome.index);
}
await store.close();
console.log(JSON.stringify(indexes));

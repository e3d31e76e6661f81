/**
 * `map` over every item, at most `limit` at once, begun in the order of the items. Resolves with the results in
 * that order when all have ended. After the first rejection no more are begun; it is thrown when those under way
 * have ended, so that nothing goes on behind the caller's back.
 */
export async function mapConcurrently<Item, Result>(
  items: readonly Item[],
  limit: number,
  map: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const left = items.entries();
  let hasFailed = false;
  const work = async (): Promise<void> => {
    for (const [at, item] of left) {
      try {
        results[at] = await map(item);
      } catch (error) {
        hasFailed = true;
        throw error;
      }
      if (hasFailed) return;
    }
  };
  const workers = await Promise.allSettled(Array.from({ length: Math.min(limit, items.length) }, work));
  for (const worker of workers) if (worker.status === "rejected") throw worker.reason;
  return results;
}

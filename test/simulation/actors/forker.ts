/** Forks streams at their tail, inside them, and inside a record; some forks begin with records of their own. */
import { Actor } from "../stage.ts";

export class Forker extends Actor {
  protected async act(): Promise<void> {
    const { stage, prng } = this;
    const plan = this.pickPlan();
    if (plan.sourceName === null) return;
    const { name, sourceName, contentType } = plan;
    const head = await stage.requests.head(sourceName);
    if (head.kind !== "value") return;
    const { startOffset, nextOffset } = head.value;
    const offset = prng.chance(0.3) ? null : prng.between(startOffset, nextOffset);
    const isInside = offset !== null && offset < nextOffset && prng.chance(0.4);
    const isJson = contentType.includes("json");
    const subOffset = !isInside ? 0 : isJson ? prng.between(1, nextOffset - (offset ?? 0)) : prng.between(1, 12);
    const count = prng.chance(0.2) ? prng.between(1, 3) : 0;
    const batch = count === 0 ? null : stage.model.plan({ name, count, paddingBytes: 20, closes: false, producer: null, isCreate: true });
    await stage.requests.create(
      {
        name,
        contentType: prng.chance(0.5) ? null : contentType,
        ttlSeconds: null,
        expiresAtMs: null,
        isClosed: false,
        records: batch?.records() ?? [],
        fork: { sourceName, offset, subOffset },
      },
      batch,
    );
  }
}

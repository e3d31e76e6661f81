/**
 * An idempotent producer on one stream at a time: numbers its appends, sends one or two at once, and
 * repeats each with the same number until it hears of it. What it is told must be what it would be told
 * without any crash: the next number is accepted, a repeat is called a duplicate, and nothing is a gap.
 */
import type { ErrorCode } from "../../../src/lib/errors.ts";
import type { AppendResult } from "../../../src/streams/stream-service.ts";
import type { Answer } from "../client.ts";
import type { Batch } from "../model/batch.ts";
import { Actor, type StreamPlan } from "../stage.ts";

/** What became of one append in the end. `over`: the stream takes no more, or is gone. */
type Settled = "taken" | "over" | "given_up";

const TRIES_MAX = 12;

/** The same append may succeed later. */
const TEMPORARY: ReadonlySet<ErrorCode> = new Set([
  "unavailable",
  "durability",
  "unknown_outcome",
  "fenced_node",
  "storage_failed",
  "storage_full",
  "database_failed",
]);

export class Producer extends Actor {
  #life = 0;
  /** How many lives its stream had had when a batch was first sent. */
  readonly #livesAtSend = new WeakMap<Batch, number>();

  /** One life of the producer: a fresh id, some appends in a row. */
  protected async act(): Promise<void> {
    const plan = this.pickPlan();
    const producerId = `${this.name}-${this.#life++}`;
    const total = this.prng.between(1, 12);
    let producerEpoch = 0n;
    let seq = 0n;
    while (seq < total && !this.stage.isOver) {
      const isPaired = this.prng.chance(0.2);
      const stamps = isPaired ? [seq, seq + 1n] : [seq];
      const batches = stamps.map((number) => this.#plan(plan, producerId, producerEpoch, number));
      const settled = await this.#sendUntilSettled(batches);
      if (settled !== "taken") return;
      seq += BigInt(stamps.length);
      // A repeat of what is long settled is a duplicate, however old it is.
      if (this.prng.chance(0.1)) await this.#repeat(batches[0]);
      if (this.prng.chance(0.05)) {
        producerEpoch += 1n;
        seq = 0n;
      }
      await this.sleep(this.prng.around(this.prng.chance(0.1) ? 20_000 : 50));
    }
  }

  #plan(plan: StreamPlan, producerId: string, producerEpoch: bigint, seq: bigint): Batch {
    const closes = plan.isClosable && this.prng.chance(0.02);
    return this.stage.model.plan({
      name: plan.name,
      count: closes && this.prng.chance(0.5) ? 0 : this.prng.chance(0.6) ? 1 : this.prng.between(1, 6),
      paddingBytes: this.prng.below(200),
      closes,
      producer: { producerId, producerEpoch, seq },
      isCreate: false,
    });
  }

  /** Sends all at once, then each again in order until it is answered. */
  async #sendUntilSettled(batches: readonly Batch[]): Promise<Settled> {
    const first = await Promise.all(batches.map((batch) => this.#send(batch)));
    for (const [at, batch] of batches.entries()) {
      const settled = await this.#settle(batch, first[at] ?? { kind: "unreachable" }, batches.length > 1);
      if (settled !== "taken") return settled;
    }
    return "taken";
  }

  async #settle(batch: Batch, first: Answer<AppendResult>, wasPaired: boolean): Promise<Settled> {
    let answer = first;
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      // A close of a closed stream takes no sequence (Pico 6): there is nothing to go on with.
      if (answer.kind === "value") return answer.value.kind === "closed_before" ? "over" : "taken";
      if (answer.kind === "refused") {
        const { code } = answer.error;
        if (code === "closed" || code === "not_found" || code === "gone") return "over";
        const isExpected = TEMPORARY.has(code);
        // The second of a pair may overtake the first, on the way or in a node that died between them.
        const isOvertaken = wasPaired && (code === "sequence_gap" || code === "bad_request");
        if (!isExpected && !isOvertaken) return this.#explain(batch, code);
      }
      await this.sleep(this.prng.around(500) + 10);
      answer = await this.#send(batch);
    }
    return "given_up";
  }

  /** A refusal that only another life of the stream can explain: its producers begin anew. */
  #explain(batch: Batch, code: string): Settled {
    const { world, model } = this.stage;
    const { name, producer } = batch.plan;
    world.check(
      model.livesCount(name) > 1,
      () =>
        `producer ${producer?.producerId} on ${name}: epoch ${producer?.producerEpoch}, sequence ${producer?.seq} was refused with ${code}`,
    );
    return "over";
  }

  #send(batch: Batch): Promise<Answer<AppendResult>> {
    if (!this.#livesAtSend.has(batch)) this.#livesAtSend.set(batch, this.stage.model.livesCount(batch.plan.name));
    return this.stage.requests.append(batch, { patienceMs: this.prng.chance(0.2) ? this.prng.between(20, 2000) : 30_000 });
  }

  async #repeat(batch: Batch | undefined): Promise<void> {
    if (batch === undefined) return;
    const { model, world } = this.stage;
    const { name } = batch.plan;
    // An answer that was long on its way may be of a life that is over.
    const lives = this.#livesAtSend.get(batch);
    const answer = await this.#send(batch);
    if (answer.kind !== "value" || model.livesCount(name) !== lives) return;
    world.check(
      answer.value.kind === "duplicate",
      () => `producer ${batch.plan.producer?.producerId} on ${name}: a repeat was written again`,
    );
    world.trace.count("producer repeat");
  }
}

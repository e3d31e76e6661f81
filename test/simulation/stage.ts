/** What actors share: the world, the names they work on, and the requests they may send. */

import type { Model } from "./model/model.ts";
import type { Requests } from "./requests.ts";
import type { Prng } from "./world/prng.ts";
import type { World } from "./world/world.ts";

/** A name of the run, and what is done with it. */
export interface StreamPlan {
  readonly name: string;
  readonly contentType: string;
  /** Sliding life in seconds; null: for ever. */
  readonly ttlSeconds: bigint | null;
  readonly isDeletable: boolean;
  readonly isClosable: boolean;
  /** Source to fork from; null: a stream of its own. */
  readonly sourceName: string | null;
}

export interface Stage {
  readonly world: World;
  readonly model: Model;
  readonly requests: Requests;
  readonly plans: readonly StreamPlan[];
  /** True once enough was done: actors finish what they have begun and end. */
  isOver: boolean;
}

/** A small, named piece of load: does one thing, again and again, until the stage is over. */
export abstract class Actor {
  protected readonly prng: Prng;

  constructor(
    protected readonly stage: Stage,
    readonly name: string,
    /** Mean pause between two acts, in true milliseconds. */
    private readonly thinkMs: number,
  ) {
    this.prng = stage.world.prng.branch(`actor ${name}`);
  }

  protected abstract act(): Promise<void>;

  async run(): Promise<void> {
    while (!this.stage.isOver) {
      await this.sleep(this.prng.around(this.thinkMs));
      if (!this.stage.isOver) await this.act();
    }
  }

  protected sleep(ms: number): Promise<void> {
    return this.stage.world.scheduler.sleep(ms, `${this.name} thinks`);
  }

  protected pickPlan(): StreamPlan {
    return this.prng.pick(this.stage.plans);
  }
}

/** Fills the disks of the hosts, or the bucket, and frees them again. */
import type { SimBucket } from "../seams/sim-bucket.ts";
import type { SimNode } from "../sim-node.ts";
import { Actor, type Stage } from "../stage.ts";

export class Filler extends Actor {
  constructor(
    stage: Stage,
    name: string,
    thinkMs: number,
    private readonly nodes: readonly SimNode[],
    private readonly bucket: SimBucket,
  ) {
    super(stage, name, thinkMs);
  }

  protected async act(): Promise<void> {
    const place = this.prng.chance(0.5) ? this.bucket : this.prng.pick(this.nodes).disk;
    place.isFull = true;
    await this.sleep(this.prng.magnitude(100, 30_000));
    place.isFull = false;
  }
}

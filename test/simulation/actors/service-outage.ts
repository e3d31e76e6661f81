/** Takes a service away for a while: for everybody, or for one host that is cut off from it. Or makes it slow. */
import type { SimService } from "../seams/service-link.ts";
import type { SimNode } from "../sim-node.ts";
import { Actor, type Stage } from "../stage.ts";

export class ServiceOutage extends Actor {
  constructor(
    stage: Stage,
    name: string,
    thinkMs: number,
    private readonly service: SimService,
    private readonly nodes: readonly SimNode[],
  ) {
    super(stage, name, thinkMs);
  }

  protected async act(): Promise<void> {
    const { service, prng } = this;
    const { trace } = this.stage.world;
    const lastsMs = prng.magnitude(50, 40_000);
    if (prng.chance(0.2)) {
      trace.count(`slow ${service.name}`);
      service.slowness = prng.between(5, 100);
      await this.sleep(lastsMs);
      service.slowness = 1;
      return;
    }
    if (prng.chance(0.5)) {
      trace.count(`outage ${service.name}`);
      service.isDown = true;
      await this.sleep(lastsMs);
      service.isDown = false;
      return;
    }
    const { nodeId } = prng.pick(this.nodes);
    trace.count(`partition ${service.name}`);
    service.cutHosts.add(nodeId);
    await this.sleep(lastsMs);
    service.cutHosts.delete(nodeId);
  }
}

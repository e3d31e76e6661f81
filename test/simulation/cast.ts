/** Who appears in a run: the names to work on and the actors, as the options say. */
import { Appender } from "./actors/appender.ts";
import { ClockStepper } from "./actors/clock-stepper.ts";
import { Crasher } from "./actors/crasher.ts";
import { Creator } from "./actors/creator.ts";
import { Deleter } from "./actors/deleter.ts";
import { Filler } from "./actors/filler.ts";
import { Forker } from "./actors/forker.ts";
import { LiveReader } from "./actors/live-reader.ts";
import { Pauser } from "./actors/pauser.ts";
import { Producer } from "./actors/producer.ts";
import { Reader } from "./actors/reader.ts";
import { ScrubStarter } from "./actors/scrubber.ts";
import { ServiceOutage } from "./actors/service-outage.ts";
import { Stopper } from "./actors/stopper.ts";
import { Toucher } from "./actors/toucher.ts";
import { Trimmer } from "./actors/trimmer.ts";
import type { Cluster } from "./cluster.ts";
import type { SimulationOptions } from "./options.ts";
import type { Actor, Stage, StreamPlan } from "./stage.ts";
import type { Prng } from "./world/prng.ts";

export function drawPlans(options: SimulationOptions, prng: Prng): readonly StreamPlan[] {
  const plans: StreamPlan[] = [];
  for (let i = 0; i < options.streamCount; i++) {
    plans.push({
      name: prng.chance(0.2) ? `/dir/stréam-${i}` : `/stream-${i}`,
      contentType: prng.pick(["application/json", "text/plain; charset=utf-8", "application/octet-stream"]),
      ttlSeconds: prng.chance(options.ttlChance) ? BigInt(prng.between(2, 60)) : null,
      isDeletable: prng.chance(0.4),
      isClosable: prng.chance(0.4),
      sourceName: null,
    });
  }
  for (let i = 0; i < options.forkCount; i++) {
    const source = prng.pick(plans);
    plans.push({
      name: `/fork-${i}`,
      contentType: source.contentType,
      ttlSeconds: null,
      isDeletable: prng.chance(0.7),
      isClosable: prng.chance(0.3),
      sourceName: source.name,
    });
  }
  return plans;
}

export function castActors(stage: Stage, cluster: Cluster, options: SimulationOptions): readonly Actor[] {
  const { thinkMs } = options;
  const creator = new Creator(stage, "creator", thinkMs * 2);
  const actors: Actor[] = [
    creator,
    new Deleter(stage, "deleter", thinkMs * 8, creator),
    new Trimmer(stage, "trimmer", thinkMs * 4),
    new Forker(stage, "forker", thinkMs * 3),
    new Toucher(stage, "toucher", thinkMs * 2),
    new Crasher(stage, "crasher", options.crashEveryMs, cluster.nodes, options.powerLossChance),
  ];
  for (let i = 0; i < options.appenders; i++) actors.push(new Appender(stage, `appender ${i}`, thinkMs));
  for (let i = 0; i < options.producers; i++) actors.push(new Producer(stage, `producer-${i}`, thinkMs));
  for (let i = 0; i < options.readers; i++) actors.push(new Reader(stage, `reader ${i}`, thinkMs * 2));
  for (let i = 0; i < options.liveReaders; i++) actors.push(new LiveReader(stage, `live reader ${i}`, thinkMs));
  const {
    pauseEveryMs,
    stopEveryMs,
    storeOutageEveryMs,
    databaseOutageEveryMs,
    fillEveryMs,
    clockStepEveryMs,
    databaseStepMsMax,
    scrubEveryMs,
  } = options;
  const { nodes, store, databaseService, bucket, database } = cluster;
  if (scrubEveryMs !== null) actors.push(new ScrubStarter(stage, "scrub starter", scrubEveryMs, nodes));
  if (pauseEveryMs !== null) actors.push(new Pauser(stage, "pauser", pauseEveryMs, nodes));
  if (stopEveryMs !== null) actors.push(new Stopper(stage, "stopper", stopEveryMs, nodes));
  if (storeOutageEveryMs !== null) actors.push(new ServiceOutage(stage, "store outage", storeOutageEveryMs, store, nodes));
  if (databaseOutageEveryMs !== null)
    actors.push(new ServiceOutage(stage, "database outage", databaseOutageEveryMs, databaseService, nodes));
  if (fillEveryMs !== null) actors.push(new Filler(stage, "filler", fillEveryMs, nodes, bucket));
  if (clockStepEveryMs !== null)
    actors.push(new ClockStepper(stage, "clock stepper", clockStepEveryMs, nodes, database, databaseStepMsMax));
  return actors;
}

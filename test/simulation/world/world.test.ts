import { expect, test } from "bun:test";
import { sleep } from "../../../src/lib/clock.ts";
import { forbidRealWorld } from "./forbidden.ts";
import { Prng } from "./prng.ts";
import { SimProcess } from "./process.ts";
import { HostTime, SimClock } from "./sim-clock.ts";
import { World } from "./world.ts";

/** Three chains that sleep drawn times and draw again; returns what they did and the trace hash. */
function run(seed: string): { readonly log: string; readonly hash: string } {
  const world = new World(seed);
  const process = new SimProcess("node 1, life 1", world.scheduler);
  const clock = new SimClock(world.scheduler, new HostTime(world.scheduler, 0.0001, 0), process);
  const prng = world.prng.branch("chains");
  const log: string[] = [];
  let left = 3;
  const chain = async (name: string): Promise<void> => {
    for (let i = 0; i < 20; i++) {
      await sleep(clock, prng.below(3));
      log.push(`${name}${i}@${clock.monotonicMs()}`);
    }
    left -= 1;
  };
  for (const name of ["a", "b", "c"]) world.spawn(chain(name));
  world.runUntil(() => left === 0, 1000, "chains");
  expect(world.failure).toBeNull();
  return { log: log.join(" "), hash: world.trace.hash };
}

test("the same seed gives the identical trace, another seed another one", () => {
  const first = run("7");
  expect(run("7")).toEqual(first);
  expect(run("8").hash).not.toBe(first.hash);
});

test("promise continuations run before the next event", () => {
  const world = new World("1");
  const log: string[] = [];
  const chain = async (): Promise<void> => {
    for (let i = 0; i < 5; i++) await null;
    log.push("chain");
  };
  world.scheduler.schedule(1, "first", () => world.spawn(chain()));
  world.scheduler.schedule(2, "second", () => log.push("second"));
  world.runUntil(() => log.length === 2, 10, "both");
  expect(log).toEqual(["chain", "second"]);
});

test("a timer of a dead process never fires, one of a paused process fires when it resumes", () => {
  const world = new World("1");
  const process = new SimProcess("node 1, life 1", world.scheduler);
  const clock = new SimClock(world.scheduler, new HostTime(world.scheduler, 0, 0), process);
  const log: string[] = [];
  clock.schedule(1, () => log.push("early"));
  clock.schedule(10, () => log.push("late"));
  const cancelled = clock.schedule(2, () => log.push("cancelled while parked"));
  process.pause();
  world.scheduler.schedule(5, "resume", () => {
    expect(log).toEqual([]);
    cancelled.cancel();
    process.resume();
  });
  world.scheduler.schedule(7, "death", () => process.die("kill"));
  world.scheduler.schedule(20, "end", () => log.push("end"));
  world.runUntil(() => log.includes("end"), 30, "end");
  expect(log).toEqual(["early", "end"]);
});

test("a wall clock step moves the wall clock alone", () => {
  const world = new World("1");
  const process = new SimProcess("node 1, life 1", world.scheduler);
  const host = new HostTime(world.scheduler, 0, 500);
  const clock = new SimClock(world.scheduler, host, process);
  const wallMs = clock.nowMs();
  host.offsetMs -= 3_600_000;
  expect(clock.nowMs()).toBe(wallMs - 3_600_000);
  expect(clock.monotonicMs()).toBe(0);
});

test("the real clock and real chance throw while they are forbidden, and are back afterwards", () => {
  const restore = forbidRealWorld();
  try {
    expect(() => Date.now()).toThrow("inside a simulated run");
    expect(() => Math.random()).toThrow("inside a simulated run");
    expect(() => setTimeout(() => {}, 1)).toThrow("inside a simulated run");
  } finally {
    restore();
  }
  expect(Date.now()).toBeGreaterThan(0);
});

test("a throw inside an actor fails the run", () => {
  const world = new World("1");
  const work = async (): Promise<void> => {
    await world.scheduler.sleep(1, "actor");
    throw new Error("actor broke");
  };
  world.spawn(work());
  world.runUntil(() => false, 10, "actor");
  expect(world.failure?.message).toBe("actor broke");
});

test("draws are uniform enough and stay in their bounds", () => {
  const prng = new Prng("bounds");
  const seen = new Set<number>();
  for (let i = 0; i < 1000; i++) {
    const value = prng.between(3, 7);
    expect(value >= 3 && value <= 7).toBe(true);
    seen.add(value);
  }
  expect([...seen].sort()).toEqual([3, 4, 5, 6, 7]);
  expect(prng.branch("x").next()).toBe(new Prng("bounds").branch("x").next());
});

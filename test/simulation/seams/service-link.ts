/**
 * The way from one process to one service (the object store, the database), and the service's own state.
 *
 * A call leaves, takes effect at the service in one step, and its answer comes back; each may be delayed,
 * the request or the answer lost, the effect refused, or so late that its caller has long given up.
 * What the caller hears is what a careful client library would say: a failure where nothing can have
 * happened (or for a read), an unknown outcome otherwise. Calls of a dead process go unanswered; a
 * request that had left it may still take effect.
 */
import { type ErrorCode, PicoError } from "../../../src/lib/errors.ts";
import type { Prng } from "../world/prng.ts";
import type { SimProcess } from "../world/process.ts";
import type { World } from "../world/world.ts";
import { CALM, type Weather } from "./weather.ts";

/** A service that all nodes share. */
export class SimService {
  /** Refuses every call while true. */
  isDown = false;
  /** Every way takes so many times as long. */
  slowness = 1;
  /** Hosts that cannot reach it now; their calls end as time-outs. */
  readonly cutHosts = new Set<number>();
  readonly #prng: Prng;

  constructor(
    readonly world: World,
    /** `store` or `database`: names it in the trace and in the counts. */
    readonly name: string,
    private readonly stormy: Weather,
    /** The code of a call that certainly did nothing. */
    readonly failedCode: ErrorCode,
  ) {
    this.#prng = world.prng.branch(`service ${name}`);
  }

  get prng(): Prng {
    return this.#prng;
  }

  get weather(): Weather {
    return this.world.faultsOn ? this.stormy : CALM;
  }
}

interface Fate {
  readonly refuse: boolean;
  readonly loseRequest: boolean;
  readonly loseAnswer: boolean;
  readonly requestMs: number;
  readonly answerMs: number;
}

/** Resolves never: what a process sees of the world after its death. */
export function never<T>(): Promise<T> {
  return new Promise<T>(() => {});
}

export class ServiceLink {
  #isClosed = false;

  constructor(
    readonly service: SimService,
    private readonly process: SimProcess,
    private readonly host: number,
  ) {}

  /** Later calls are refused. */
  close(): void {
    this.#isClosed = true;
  }

  /**
   * Calls the service. `operate` is the effect: one synchronous step at the service, which returns the
   * answer or throws a `PicoError` as the answer; any other throw fails the run.
   */
  call<T>(what: string, kind: "read" | "write", operate: () => T): Promise<T> {
    const { service, process } = this;
    const { world } = service;
    if (process.isDead) return never();
    if (this.#isClosed) return Promise.reject(new PicoError(service.failedCode, `${service.name}: ${what} refused, the client is closed`));
    const label = `${process.name} ${service.name} ${what}`;
    world.trace.count(`call ${service.name}`);
    const diesHere = world.breakers.pass(process, label, "request");
    if (diesHere && service.prng.chance(0.5)) return never();

    const fate = this.#drawFate();
    return new Promise<T>((resolve, reject) => {
      let isAnswered = false;
      const answer = (run: () => void): void => {
        process.deliver(() => {
          if (isAnswered) return;
          isAnswered = true;
          timeout.cancel();
          run();
        });
      };
      const timeout = world.scheduler.schedule(service.weather.timeoutMs, `${label} timeout`, () => {
        world.trace.count(`fault ${service.name} ${kind} timed out`);
        answer(() => reject(this.#timeoutError(what, kind)));
      });
      if (fate.loseRequest || service.cutHosts.has(this.host)) {
        world.trace.count(`fault ${service.name} request lost`);
        return;
      }
      world.scheduler.schedule(fate.requestMs, `${label} arrives`, () => {
        const sendBack = this.#takeEffect(what, fate, operate, resolve, reject);
        world.breakers.pass(process, label, "effect");
        if (fate.loseAnswer || service.cutHosts.has(this.host)) {
          world.trace.count(`fault ${service.name} answer lost`);
          this.#countFault(what, "answer lost");
          return;
        }
        world.scheduler.schedule(fate.answerMs, `${label} answered`, () => {
          if (!world.breakers.pass(process, label, "answer")) answer(sendBack);
        });
      });
    });
  }

  /** What the caller is to hear, as a step to run in its process. */
  #takeEffect<T>(what: string, fate: Fate, operate: () => T, resolve: (value: T) => void, reject: (error: Error) => void): () => void {
    const { service } = this;
    if (service.isDown || fate.refuse) {
      service.world.trace.count(`fault ${service.name} refused`);
      this.#countFault(what, "refused");
      const error = new PicoError(service.failedCode, `${service.name}: ${what} refused`);
      return () => reject(error);
    }
    try {
      const value = operate();
      return () => resolve(value);
    } catch (error) {
      if (error instanceof PicoError) return () => reject(error);
      service.world.record(error);
      throw error;
    }
  }

  /** Of those calls that maintenance makes, one by one. */
  #countFault(what: string, fault: string): void {
    const [call] = what.split(" ");
    const { name, world } = this.service;
    if (name === "store" && (call === "list" || call === "delete")) world.trace.count(`fault store ${call} ${fault}`);
  }

  #drawFate(): Fate {
    const { weather, prng } = this.service;
    const oneWay = (): number => prng.around(weather.delayMs) * (prng.chance(weather.slowChance) ? 10 : 1) * this.service.slowness;
    const isLate = prng.chance(weather.lateChance);
    if (isLate) this.service.world.trace.count(`fault ${this.service.name} late effect`);
    return {
      refuse: prng.chance(weather.refuseChance),
      loseRequest: prng.chance(weather.loseRequestChance),
      loseAnswer: prng.chance(weather.loseAnswerChance),
      requestMs: isLate
        ? weather.timeoutMs + prng.fraction() * (weather.lateMsMax - weather.timeoutMs)
        : Math.min(oneWay(), weather.lateMsMax),
      answerMs: oneWay(),
    };
  }

  #timeoutError(what: string, kind: "read" | "write"): PicoError {
    const { service } = this;
    if (kind === "read") return new PicoError(service.failedCode, `${service.name}: ${what} timed out`);
    return new PicoError("unknown_outcome", `${service.name}: ${what} timed out, its outcome is not known`);
  }
}

/**
 * A client of the cluster, as actors use it: the network between it and a node delays requests and
 * answers and loses some, and a node that dies takes the requests it holds with it.
 */
import { type ErrorCode, PicoError } from "../../src/lib/errors.ts";
import type { MaybePromise, StreamService } from "../../src/streams/stream-service.ts";
import type { Prng } from "./world/prng.ts";
import type { SimProcess } from "./world/process.ts";
import type { World } from "./world/world.ts";

/** The node that answers for a stream now. */
export interface Serving {
  readonly process: SimProcess;
  readonly service: StreamService;
}

export type Answer<T> =
  | { readonly kind: "value"; readonly value: T }
  | { readonly kind: "refused"; readonly error: PicoError }
  /** Nobody was there to take it: nothing happened. */
  | { readonly kind: "unreachable" }
  /** It was sent, and nothing was heard: it may have happened, or may yet. */
  | { readonly kind: "lost" };

/** What a request is about: a stream, and whatever helps to find the request in a trace. */
export interface Subject {
  readonly name: string;
  readonly detail: string;
}

/** Codes that only a broken server, or damaged data, which no run has, can cause. */
const IMPOSSIBLE: ReadonlySet<ErrorCode> = new Set(["internal", "corrupt", "incompatible", "settings", "locked"]);

export class Client {
  readonly #prng: Prng;
  /** Mean of one way, in true milliseconds. */
  readonly #delayMs: number;
  readonly #loseChance: number;

  constructor(
    private readonly world: World,
    private readonly findServing: (name: string) => Serving | null,
  ) {
    this.#prng = world.prng.branch("client");
    this.#delayMs = this.#prng.magnitude(0.1, 20);
    this.#loseChance = this.#prng.chance(0.5) ? 0 : this.#prng.magnitude(0.001, 0.05);
  }

  /**
   * Sends one request about the stream `name`. `patienceMs`: how long the client waits for the answer,
   * in true time; the request may take effect later than that.
   */
  ask<T>(what: string, subject: Subject, operate: (service: StreamService) => MaybePromise<T>, patienceMs = 30_000): Promise<Answer<T>> {
    const { name, detail } = subject;
    const { world } = this;
    world.trace.count(`operation ${what}`);
    return new Promise((resolve) => {
      let isEnded = false;
      const end = (answer: Answer<T>): void => {
        if (isEnded) return;
        isEnded = true;
        world.trace.note(`client ${what} ${name}${detail} ${describe(answer)}`);
        patience.cancel();
        resolve(answer);
      };
      const patience = world.scheduler.schedule(patienceMs, `client gives up ${what} ${name}`, () => end({ kind: "lost" }));
      world.scheduler.schedule(this.#oneWayMs(), `client ${what} ${name}${detail} arrives`, () => {
        const serving = this.findServing(name);
        if (serving === null) end({ kind: "unreachable" });
        else this.#serve(serving, what, operate, end);
      });
    });
  }

  #serve<T>(serving: Serving, what: string, operate: (service: StreamService) => MaybePromise<T>, end: (answer: Answer<T>) => void): void {
    const { process, service } = serving;
    const { world } = this;
    const unlisten = process.onDeath(() => world.scheduler.schedule(this.#oneWayMs(), `client ${what} reset`, () => end({ kind: "lost" })));
    const label = `${process.name} client ${what}`;
    const reply = (answer: Answer<T>): void => {
      if (world.breakers.pass(process, label, "request")) return;
      if (world.faultsOn && this.#prng.chance(this.#loseChance)) {
        world.trace.count("fault client answer lost");
        return;
      }
      // It is on its way now, whatever becomes of the process.
      unlisten();
      world.scheduler.schedule(this.#oneWayMs(), `${label} answered`, () => end(answer));
      world.breakers.pass(process, label, "effect");
    };
    process.deliver(() => {
      let result: MaybePromise<T>;
      try {
        result = operate(service);
      } catch (error) {
        result = Promise.reject(error);
      }
      Promise.resolve(result).then(
        (value) => {
          if (!process.isDead) reply({ kind: "value", value });
        },
        (error: unknown) => {
          if (!process.isDead) reply({ kind: "refused", error: this.#refusal(what, error) });
        },
      );
    });
  }

  #refusal(what: string, error: unknown): PicoError {
    if (error instanceof PicoError && !IMPOSSIBLE.has(error.code)) return error;
    this.world.record(error);
    return new PicoError("internal", `${what} broke`, {}, error);
  }

  #oneWayMs(): number {
    return this.#prng.around(this.world.faultsOn ? this.#delayMs : 0.1);
  }
}

function describe<T>(answer: Answer<T>): string {
  return answer.kind === "refused" ? `refused ${answer.error.code}` : answer.kind;
}

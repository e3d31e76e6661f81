/**
 * The Pico protocol below `/pico` of the admin listener: the same handler as on its own listener, for pages
 * that are served here and so may ask nobody else. Which pages may, the admin listener's rules say.
 */
import type { Clock } from "../lib/clock.ts";
import { PicoError } from "../lib/errors.ts";
import { type Exchange, mountedAt } from "../protocol/exchange.ts";
import type { OriginPolicy } from "../protocol/origin-policy.ts";
import { picoError } from "../protocol/pico-answer.ts";
import { openPicoContext, type PicoContext } from "../protocol/pico-context.ts";
import { createPicoHandler } from "../protocol/pico-handler.ts";
import type { ProtocolContext } from "../protocol/protocol-context.ts";
import { type ExchangeHandler, refusing, watched } from "../protocol/protocol-edge.ts";
import { shorten } from "../protocol/shorten.ts";
import type { RequestObserver } from "../protocol/traffic.ts";
import type { MaybePromise } from "../streams/stream-service.ts";

export const PICO_PATH = "/pico";

/** What a browser may want an answer for (`Sec-Fetch-Dest`): to hand it to a page's code, or to show it by itself, in a sandbox. */
const DESTINATIONS: ReadonlySet<string> = new Set(["empty", "document"]);

export function isBelowPico(rawPath: string): boolean {
  return rawPath.startsWith(PICO_PATH) && (rawPath.length === PICO_PATH.length || rawPath.charCodeAt(PICO_PATH.length) === 0x2f);
}

export interface PicoMountParts {
  /** Which pages may ask. */
  readonly policy: OriginPolicy;
  readonly log: ProtocolContext["log"];
  readonly clock: Pick<Clock, "monotonicMs">;
  /** Is told of each answer, also of those that come before the node serves. @default nobody is told */
  readonly observer?: RequestObserver | undefined;
}

export class PicoMount {
  readonly #answer: ExchangeHandler;
  #context: PicoContext | null = null;
  #isOpen = false;

  constructor({ policy, log, clock, observer }: PicoMountParts) {
    const pico = createPicoHandler({
      policy,
      log,
      context: () => (this.#isOpen ? this.#context : null),
      // What is being answered when the mount closes may find it too.
      onInvariantBroken: (error) => this.#context?.onInvariantBroken(error),
    });
    const handler = refusing(
      (exchange) => {
        checkDestination(exchange);
        return pico(exchange);
      },
      (exchange, error) => picoError(exchange, error, log),
    );
    this.#answer = watched(handler, clock, observer);
  }

  /** Serves the node's streams from here on; before it everything is `unavailable`. */
  open(base: ProtocolContext): void {
    this.#context = openPicoContext(base);
    this.#isOpen = true;
  }

  /** What comes from here on is `unavailable`; what is being answered goes on. */
  close(): void {
    this.#isOpen = false;
  }

  /** For a path that `isBelowPico`. */
  answer(exchange: Exchange): MaybePromise<Response> {
    return this.#answer(mountedAt(exchange, PICO_PATH));
  }
}

/**
 * Records are of this origin here, and what anybody wrote. Whatever gets into the markup of a page, its policy
 * must not be talked into running a record as one of the page's own scripts.
 */
function checkDestination(exchange: Exchange): void {
  const destination = exchange.headers["sec-fetch-dest"];
  if (destination === undefined || DESTINATIONS.has(destination)) return;
  throw new PicoError("forbidden_origin", `records are data: a page may fetch them, not load them as ${shorten(destination)}`);
}

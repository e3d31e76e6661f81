/** Makers of outcomes, and the command of one type. */
import type { Command, Outcome, RefusalCode } from "./command.ts";

export type CommandOf<Type extends Command["type"]> = Extract<Command, { type: Type }>;

type Facts = Outcome["facts"];

const NO_FACTS: Facts = Object.freeze({});

export function done(facts: Facts = NO_FACTS): Outcome {
  return { applied: true, facts };
}

/** Facts are whole numbers from 0. */
export function refused(code: RefusalCode, facts: Facts = NO_FACTS): Outcome {
  return { applied: false, code, facts };
}

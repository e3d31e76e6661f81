/**
 * A black-box suite of the Pico protocol: cases that know a URL and nothing of the server behind it.
 * Each names the sections of the contract that it checks; a section without a case fails the run.
 */
import { PicoClient } from "./pico-client.ts";

/** Sections of the contract that must have cases. */
export const SECTIONS = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "12", "13", "14", "15"] as const;

export interface Target {
  readonly picoUrl: string;
  /** The Durable Streams listener of the same streams; null: cases that need it are left out. */
  readonly durableStreamsUrl: string | null;
  readonly longPollSeconds: number;
  readonly sseSeconds: number;
  readonly requestBytesMax: number;
  readonly pageBytes: number;
}

export interface CaseContext {
  readonly target: Target;
  readonly pico: PicoClient;
  /** Throws in a case that `needsDurableStreams` does not mark. */
  readonly durableStreams: PicoClient;
  /** A stream name that nobody else uses. */
  newName(): string;
}

export interface PicoCase {
  /** `§7`, `§1.4`: of the contract's page on the protocol. */
  readonly sections: readonly string[];
  /** The fact, and its condition. */
  readonly name: string;
  readonly needsDurableStreams?: boolean;
  run(context: CaseContext): Promise<void>;
}

export type CaseList = readonly PicoCase[];

export interface SuiteResult {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** Cases under way at once: they wait more than they work. */
const PARALLEL_MAX = 8;

export async function runSuite(target: Target, cases: CaseList): Promise<SuiteResult> {
  const runId = crypto.randomUUID().slice(0, 8);
  const isOffered = (one: PicoCase) => one.needsDurableStreams !== true || target.durableStreamsUrl !== null;
  const chosen = cases.filter(isOffered);
  const failures: string[] = [];
  let taken = 0;
  async function work(): Promise<void> {
    for (let index = taken++; index < chosen.length; index = taken++) {
      const one = chosen[index];
      if (one === undefined) return;
      const error = await runCase(target, one, `/suite/${runId}/${index}`);
      if (error !== null) failures.push(`${label(one)}\n    ${error.split("\n").slice(0, 12).join("\n    ")}`);
    }
  }
  await Promise.all(Array.from({ length: PARALLEL_MAX }, work));
  for (const failure of failures) console.log(`failed: ${failure}`);
  const missing = printSections(chosen);
  const failed = failures.length + missing;
  return { passed: chosen.length - failures.length, failed, skipped: cases.length - chosen.length };
}

async function runCase(target: Target, one: PicoCase, prefix: string): Promise<string | null> {
  let names = 0;
  const context: CaseContext = {
    target,
    pico: new PicoClient(target.picoUrl),
    get durableStreams() {
      if (target.durableStreamsUrl === null) throw new Error("the case does not say that it needs the Durable Streams listener");
      return new PicoClient(target.durableStreamsUrl);
    },
    newName: () => `${prefix}/${names++}`,
  };
  try {
    await one.run(context);
    return null;
  } catch (error) {
    return error instanceof Error ? (error.stack ?? error.message) : String(error);
  }
}

/** Prints each section with the number of its cases; returns how many sections have none. */
function printSections(cases: CaseList): number {
  let missing = 0;
  for (const section of SECTIONS) {
    const count = cases.filter(({ sections }) => sections.some((one) => one === section || one.startsWith(`${section}.`))).length;
    console.log(`§${section}: ${count} cases`);
    if (count > 0) continue;
    missing += 1;
    console.log(`failed: section ${section} has no case`);
  }
  return missing;
}

function label(one: PicoCase): string {
  return `${one.sections.map((section) => `§${section}`).join(", ")} ${one.name}`;
}

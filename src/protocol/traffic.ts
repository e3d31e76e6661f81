/**
 * What a protocol's listener was asked and how it answered, as plain counts that are read when somebody
 * asks. Nothing in them grows with the number of streams or clients.
 */
import { DurationHistogram } from "../lib/duration-histogram.ts";
import type { ErrorCode } from "../lib/errors.ts";
import { WIRE_ERRORS } from "./error-table.ts";
import type { LiveReadObserver } from "./live-reads.ts";

/** `other`: a method without meaning. `read` is a page at once; live reads have names of their own. */
export const OPERATIONS = ["append", "create", "delete", "head", "list", "long_poll", "options", "other", "read", "sse", "trim"] as const;
export type Operation = (typeof OPERATIONS)[number];

/** Classes of statuses; this server answers no 1xx. */
export const STATUS_CLASSES = ["2xx", "3xx", "4xx", "5xx"] as const;
export type StatusClass = (typeof STATUS_CLASSES)[number];

/** Told behind each answer. What it throws is dropped. */
export interface RequestObserver {
  /** Until the answer's head; bodies of live reads go on. */
  answered(operation: Operation, status: number, durationMs: number): void;
  /** The request was answered with an error. */
  refused(code: ErrorCode): void;
}

export type TrafficObserver = RequestObserver & LiveReadObserver;

/** By method, before the request is looked at. */
export function operationOf(method: string): Operation {
  switch (method) {
    case "POST":
      return "append";
    case "GET":
      return "read";
    case "HEAD":
      return "head";
    case "PUT":
      return "create";
    case "DELETE":
      return "delete";
    case "OPTIONS":
      return "options";
    default:
      return "other";
  }
}

export class OperationTraffic {
  readonly durations = new DurationHistogram();
  readonly answers: Record<StatusClass, number> = { "2xx": 0, "3xx": 0, "4xx": 0, "5xx": 0 };
}

export class Traffic implements TrafficObserver {
  readonly operations: ReadonlyMap<Operation, OperationTraffic> = new Map(OPERATIONS.map((name) => [name, new OperationTraffic()]));
  readonly #errors = new Map<ErrorCode, number>();
  #longPollCount = 0;
  #eventStreamCount = 0;
  #overloadCount = 0;
  #failureCount = 0;

  /** Long polls that wait. */
  get longPollCount(): number {
    return this.#longPollCount;
  }

  /** Event streams that are open. */
  get eventStreamCount(): number {
    return this.#eventStreamCount;
  }

  /** Requests that were not served because the node cannot now: 429 and 503. */
  get overloadCount(): number {
    return this.#overloadCount;
  }

  /** Requests that failed: the other 5xx. */
  get failureCount(): number {
    return this.#failureCount;
  }

  errorCount(code: ErrorCode): number {
    return this.#errors.get(code) ?? 0;
  }

  answered(operation: Operation, status: number, durationMs: number): void {
    const traffic = this.operations.get(operation);
    if (traffic !== undefined) {
      traffic.durations.record(durationMs);
      traffic.answers[classOf(status)] += 1;
    }
    if (status === 429 || status === 503) this.#overloadCount += 1;
    else if (status >= 500) this.#failureCount += 1;
  }

  refused(code: ErrorCode): void {
    this.#errors.set(code, this.errorCount(code) + 1);
  }

  longPollBegan(): void {
    this.#longPollCount += 1;
  }

  longPollEnded(): void {
    this.#longPollCount -= 1;
  }

  eventStreamBegan(): void {
    this.#eventStreamCount += 1;
  }

  eventStreamEnded(): void {
    this.#eventStreamCount -= 1;
  }
}

/** Every code that an error can have, in the order of the table. */
export const ERROR_CODES = Object.keys(WIRE_ERRORS).filter((code): code is ErrorCode => code in WIRE_ERRORS);

function classOf(status: number): StatusClass {
  if (status < 300) return "2xx";
  if (status < 400) return "3xx";
  return status < 500 ? "4xx" : "5xx";
}

/**
 * Lines of the input become records of a stream, in order and each once: read, checked and handed to an idempotent
 * producer, which holds a bounded number of them. What is read waits for room there, so that a faster source waits too.
 */
import { isUtf8 } from "node:buffer";
import { isStreamError, type StreamErrorCode } from "../client/stream-error.ts";
import { messageOf } from "../lib/errors.ts";
import { formatCount } from "../lib/format-count.ts";
import { CLI_INPUT_BYTES, CLI_LINE_BYTES_MAX } from "../lib/limits.ts";
import type { AppendAcks } from "./append-acks.ts";
import { describeFailure } from "./failure.ts";
import { LineSplitter, LineTooLong } from "./line-splitter.ts";
import type { DataInput } from "./program-process.ts";
import type { LineProducer } from "./stream-client.ts";

/** Behind an acknowledgement these mean that the stream is not the one that took the lines: a new one does not know the producer. */
const LOST_STREAM: readonly StreamErrorCode[] = ["not_found", "gone", "sequence_gap"];

/** The run ended before the input did. `message` tells how much of it is durable. */
export class AppendStopped extends Error {
  override readonly name = "AppendStopped";

  constructor(
    message: string,
    readonly isInterrupted: boolean,
    cause: unknown,
  ) {
    super(message, { cause });
  }
}

export interface AppendRunOptions {
  readonly input: DataInput;
  /** Name of the stream, for messages. */
  readonly name: string;
  /** Why an empty line cannot be appended; null: it can. */
  readonly emptyLineRefusal: string | null;
  readonly acks: AppendAcks;
  /** Called when the first line is there: an empty input asks no server. */
  readonly open: () => Promise<LineProducer>;
}

/** A line of the input cannot be a record, or the input cannot be read. What came before becomes durable. */
class InputRefused extends Error {}
class Interrupted extends Error {}

export class AppendRun {
  readonly #options: AppendRunOptions;
  readonly #splitter = new LineSplitter(CLI_LINE_BYTES_MAX);
  #producer: LineProducer | null = null;
  #writtenCount = 0;
  /** What ended the run while it waited. */
  #failure: { readonly reason: unknown } | null = null;
  /** Ends the wait for input, or for the server that is looked for. */
  #rejectWait: (reason: unknown) => void = () => {};

  constructor(options: AppendRunOptions) {
    this.#options = options;
  }

  /** Reads no further; what was read becomes durable, then `run` rejects. */
  interrupt(): void {
    this.#fail(new Interrupted("interrupted"));
  }

  /** Resolves when every line is durable. Rejects with `AppendStopped`. */
  async run(): Promise<void> {
    try {
      const buffer = new Uint8Array(CLI_INPUT_BYTES);
      for (let count = await this.#read(buffer); count > 0; count = await this.#read(buffer)) {
        this.#options.acks.wasRead(count);
        for (const line of this.#splitter.split(buffer.subarray(0, count))) await this.#write(line);
        this.#watch();
      }
      const rest = this.#splitter.rest();
      if (rest !== null) await this.#write(rest);
      await this.#producer?.close();
    } catch (error) {
      throw await this.#stop(error);
    }
  }

  #read(buffer: Uint8Array): Promise<number> {
    return this.#unlessFailed(() =>
      this.#options.input.read(buffer).catch((error: unknown) => {
        throw new InputRefused(messageOf(error), { cause: error });
      }),
    );
  }

  /** What is waited for, unless the run ends before: an end must not wait for an input, or a server, that is silent. */
  #unlessFailed<T>(wait: () => Promise<T>): Promise<T> {
    if (this.#failure !== null) return Promise.reject(this.#failure.reason);
    return new Promise((resolve, reject) => {
      this.#rejectWait = reject;
      wait().then(resolve, reject);
    });
  }

  async #write(line: Uint8Array): Promise<void> {
    if (this.#failure !== null) throw this.#failure.reason;
    const number = this.#writtenCount + 1;
    const { emptyLineRefusal } = this.#options;
    if (line.length === 0 && emptyLineRefusal !== null) throw new InputRefused(`line ${number} is empty: ${emptyLineRefusal}`);
    if (!isUtf8(line)) throw new InputRefused(`line ${number} is not UTF-8`);
    this.#producer ??= await this.#unlessFailed(this.#options.open);
    this.#writtenCount = number;
    await this.#producer.write(line);
  }

  /** A producer that fails while the input is silent must not wait for the next line to tell. */
  #watch(): void {
    this.#producer?.flush().catch((error: unknown) => this.#fail(error));
  }

  #fail(reason: unknown): void {
    this.#failure ??= { reason };
    this.#rejectWait(reason);
  }

  async #stop(error: unknown): Promise<AppendStopped> {
    const reason =
      error instanceof LineTooLong ? new InputRefused(`line ${this.#writtenCount + 1} is ${messageOf(error)}, the largest record`) : error;
    const isInterrupted = reason instanceof Interrupted;
    if (!(reason instanceof InputRefused || isInterrupted))
      return new AppendStopped(`${describeFailure(reason)}${this.#tellDurable(reason)}`, false, reason);
    try {
      await this.#producer?.close();
      return new AppendStopped(`${messageOf(reason)}${this.#tellDurable(null)}`, isInterrupted, reason);
    } catch (failure) {
      return new AppendStopped(`${messageOf(reason)}; ${describeFailure(failure)}${this.#tellDurable(failure)}`, isInterrupted, failure);
    }
  }

  /** How far it came, and how to go on. `failure`: what ended the producer; null: it ended well. */
  #tellDurable(failure: unknown): string {
    const { acks, name } = this.#options;
    const { count, next } = acks;
    // A refusal tells that the batch is not there; a lost answer, or an end by force, tells nothing.
    const isUnknown = failure !== null && (!isStreamError(failure) || failure.isOutcomeUnknown) && count < this.#writtenCount;
    const durable = count === 0 ? "; no line is durable" : count === 1 ? "; 1 line is durable" : `; ${count} lines are durable`;
    const look = next === null ? `pico read ${name}` : `pico read ${name} --from ${next}`;
    const unknown = isUnknown ? `, and some behind may be: ${look} shows them` : "";
    if (count > 0 && isStreamError(failure) && LOST_STREAM.includes(failure.code)) {
      return `; ${formatCount(count, "line")} went with the stream, which was deleted meanwhile, or deleted and made anew`;
    }
    const goOn =
      count === 0 || isStreamError(failure, "closed") ? "" : `; to go on behind: tail -n +${count + 1} FILE | pico append ${name}`;
    return `${durable}${unknown}${goOn}`;
  }
}

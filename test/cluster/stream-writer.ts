/**
 * A client that appends to one stream, one request after the other, and keeps what it was told. It
 * outlives the server: a producer repeats an unanswered request until it is settled, other writers leave
 * it open and go on.
 */
import type { SeededRandom } from "../support/seeded-random.ts";
import type { HttpConnection } from "./http-connection.ts";
import type { Attempt, StreamFacts } from "./stream-facts.ts";
import { type AppendForm, appendRequest, type Protocol, readAppendAnswer } from "./stream-requests.ts";

export interface WriterOptions {
  /** Unique in the run. */
  readonly id: string;
  readonly facts: StreamFacts;
  readonly protocol: Protocol;
  readonly isProducer: boolean;
  /** Records of a request at most. */
  readonly batchMax: number;
  readonly random: SeededRandom;
}

interface Unsettled {
  readonly attempt: Attempt;
  readonly form: AppendForm;
}

/** Share of settled producer requests that are sent once more. */
const REPEAT_SHARE = 0.05;
/** A refusal for now is not answered by a storm. */
const PAUSE_MS = 5;

export class StreamWriter {
  readonly options: WriterOptions;
  appended = 0;
  repeated = 0;
  /** Answers that say "not now". */
  refused = 0;
  #number = 0;
  #seq = 0;
  #unsettled: Unsettled | null = null;
  /** The stream takes no more from this writer: closed or gone. */
  isDone = false;

  constructor(options: WriterOptions) {
    this.options = options;
  }

  /** Whether a request of it has no answer yet. */
  get isUnsettled(): boolean {
    return this.#unsettled !== null;
  }

  /**
   * One request, or the repeat of the one that had no answer; resolves with false where the server gave none.
   * `lengthMax`: of a record's text.
   */
  async step(connections: Readonly<Record<Protocol, HttpConnection>>, lengthMax: number, close: boolean): Promise<boolean> {
    const { facts, protocol, random, isProducer } = this.options;
    const { attempt, form } = this.#unsettled ?? this.#next(lengthMax, close);
    if (form.close) facts.mayBeClosed = true;
    const answer = await connections[protocol].request(appendRequest(form));
    const meaning = readAppendAnswer(form, answer);
    switch (meaning.kind) {
      case "open":
        this.#unsettled = isProducer ? { attempt, form } : null;
        if (answer === null) return false;
        this.refused += 1;
        await Bun.sleep(PAUSE_MS);
        return true;
      case "wrong":
        facts.report(`attempt ${attempt.writer}:${attempt.number} was answered ${meaning.what}`);
        this.isDone = true;
        return true;
      case "closed":
        facts.refused(attempt);
        this.#unsettled = null;
        this.isDone = true;
        if (!facts.mayBeClosed) facts.report("an append was refused as closed, and nobody closed it");
        return true;
      case "missing":
        this.isDone = true;
        if (!facts.mayBeMissing) facts.report("an append was answered 404, and nobody deleted the stream");
        return true;
      case "taken":
        this.#taken(attempt, form, meaning.offset, meaning.tail);
        if (isProducer && random.fraction() < REPEAT_SHARE) await this.#repeat(connections[protocol], attempt, form);
        return true;
    }
  }

  #next(lengthMax: number, close: boolean): Unsettled {
    const { id, facts, protocol, isProducer, batchMax, random } = this.options;
    const isSingle = protocol === "durable-streams" && !facts.isJson;
    const count = isSingle ? 1 : 1 + random.below(batchMax);
    // Most records are small, some are as large as they may be.
    const lengths = Array.from({ length: count }, () => 24 + Math.floor(random.fraction() ** 4 * lengthMax));
    const attempt = facts.begin(id, this.#number++, lengths);
    const producer = isProducer ? { id, seq: this.#seq++ } : null;
    const batch = random.pick(["json", "binary"] as const);
    return { attempt, form: { protocol, name: facts.name, isJson: facts.isJson, bodies: facts.texts(attempt), batch, close, producer } };
  }

  #taken(attempt: Attempt, form: AppendForm, offset: number | null, tail: number): void {
    const { facts } = this.options;
    if (offset === null && (form.producer === null || this.#unsettled === null)) {
      facts.report(`attempt ${attempt.writer}:${attempt.number} was sent once, and answered as a repeat`);
    }
    facts.taken(attempt, offset);
    this.#unsettled = null;
    this.appended += attempt.lengths.length;
    if (!form.close) return;
    facts.mayBeOpen = false;
    facts.tailMin = Math.max(facts.tailMin, tail);
    this.isDone = true;
  }

  /** What was taken and answered is sent again: it must be recognised. */
  async #repeat(connection: HttpConnection, attempt: Attempt, form: AppendForm): Promise<void> {
    const { facts } = this.options;
    const meaning = readAppendAnswer(form, await connection.request(appendRequest(form)));
    this.repeated += 1;
    if (meaning.kind === "open") return;
    if (meaning.kind === "taken" && meaning.offset === null) return;
    if (meaning.kind === "missing" && facts.mayBeMissing) return;
    facts.report(`a repeat of attempt ${attempt.writer}:${attempt.number} was ${meaning.kind === "wrong" ? meaning.what : meaning.kind}`);
  }
}

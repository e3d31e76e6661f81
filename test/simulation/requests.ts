/** Every kind of request an actor can send, each told to the model before it leaves and after its answer. */

import { PAGE_BYTES_DEFAULT } from "../../src/lib/limits.ts";
import type {
  AppendResult,
  CreateRequest,
  CreateResult,
  ListRequest,
  ListResult,
  ReadPage,
  StreamInfo,
  WaitOutcome,
} from "../../src/streams/stream-service.ts";
import type { Answer, Client } from "./client.ts";
import type { Batch } from "./model/batch.ts";
import { isCertain, type Model } from "./model/model.ts";
import type { World } from "./world/world.ts";

export interface AppendConditions {
  readonly matchTail: bigint | null;
  readonly streamSeq: string | null;
  readonly patienceMs: number;
}

const NO_CONDITIONS: AppendConditions = { matchTail: null, streamSeq: null, patienceMs: 30_000 };

export interface ReadBounds {
  readonly recordsMax: number;
  readonly bytesMax: number;
}

const WHOLE_PAGES: ReadBounds = { recordsMax: 0, bytesMax: PAGE_BYTES_DEFAULT };

export class Requests {
  constructor(
    private readonly world: World,
    private readonly client: Client,
    private readonly model: Model,
  ) {}

  async create(request: CreateRequest, batch: Batch | null): Promise<Answer<CreateResult>> {
    const { name } = request;
    const span = this.model.begin(name);
    if (request.isClosed) this.model.willClose(name);
    if (batch !== null) batch.underWay += 1;
    const answer = await this.client.ask("create", { name, detail: detailOf(batch) }, (service) => service.create(request));
    if (batch !== null) noteAnswer(batch, answer);
    if (answer.kind === "value") this.model.sawCreated(span, request, batch, answer.value);
    else if (answer.kind === "refused") this.model.sawCreateRefused(span, request, answer.error, batch);
    return answer;
  }

  async append(batch: Batch, conditions: Partial<AppendConditions> = {}): Promise<Answer<AppendResult>> {
    const { name, closes, producer } = batch.plan;
    const { matchTail, streamSeq, patienceMs } = { ...NO_CONDITIONS, ...conditions };
    const span = this.model.begin(name);
    batch.underWay += 1;
    if (batch.status === "refused") batch.status = "open";
    const request = { name, records: batch.records(), close: closes, producer, matchTail, streamSeq, mimeType: null };
    const answer = await this.client.ask("append", { name, detail: detailOf(batch) }, (service) => service.append(request), patienceMs);
    noteAnswer(batch, answer);
    if (answer.kind === "value") this.model.sawAppend(span, batch, answer.value);
    else if (answer.kind === "refused") this.model.sawRefusal(span, answer.error, "append", batch);
    return answer;
  }

  async read(
    name: string,
    from: number | "start" | "tail",
    bounds: ReadBounds = WHOLE_PAGES,
    patienceMs = 30_000,
  ): Promise<Answer<ReadPage>> {
    const span = this.model.begin(name);
    const answer = await this.client.ask(
      "read",
      { name, detail: ` from ${from}` },
      (service) => service.read({ name, from, ...bounds }),
      patienceMs,
    );
    if (answer.kind === "value") this.model.sawPage(span, answer.value, typeof from === "number" ? from : null);
    else if (answer.kind === "refused") {
      this.model.sawRefusal(span, answer.error, "read", null);
      if (typeof from === "number") this.model.sawPositionRefused(span, answer.error, from);
    }
    return answer;
  }

  async head(name: string): Promise<Answer<StreamInfo>> {
    const span = this.model.begin(name);
    const answer = await this.client.ask("head", { name, detail: "" }, (service) => service.head(name));
    if (answer.kind === "value") this.model.sawInfo(span, answer.value, "head");
    else if (answer.kind === "refused") this.model.sawRefusal(span, answer.error, "head", null);
    return answer;
  }

  async wait(name: string, streamId: number, offset: number, timeoutMs: number): Promise<Answer<WaitOutcome>> {
    const span = this.model.begin(name);
    const watch = this.#watchTail(streamId, offset);
    const answer = await this.client.ask(
      "wait",
      { name, detail: ` at ${offset}` },
      (service) => service.wait(streamId, offset, timeoutMs, null),
      timeoutMs + 30_000,
    );
    const passedMs = watch.end();
    if (answer.kind === "value") this.model.sawWait(span, streamId, offset, answer.value, passedMs, span.startMs + timeoutMs * 0.99);
    else if (answer.kind === "refused") this.model.sawRefusal(span, answer.error, "wait", null);
    return answer;
  }

  async trim(name: string, offset: number): Promise<Answer<{ readonly startOffset: number }>> {
    const span = this.model.begin(name);
    this.model.willTrim(name, offset);
    const answer = await this.client.ask("trim", { name, detail: ` to ${offset}` }, (service) => service.trim(name, BigInt(offset)));
    if (answer.kind === "value") this.model.sawTrim(span, offset, answer.value.startOffset);
    else if (answer.kind === "refused") this.model.sawRefusal(span, answer.error, "trim", null);
    return answer;
  }

  async delete(name: string): Promise<Answer<void>> {
    const span = this.model.begin(name);
    const answer = await this.client.ask("delete", { name, detail: "" }, (service) => service.delete(name));
    if (answer.kind === "value") this.model.sawRemoved(span);
    else if (answer.kind === "refused") this.model.sawRefusal(span, answer.error, "delete", null);
    return answer;
  }

  /** All names, page by page. */
  async list(pageSize: number): Promise<void> {
    const span = this.model.begin("");
    const found = new Set<string>();
    let after: string | null = null;
    for (;;) {
      const request: ListRequest = { prefix: "", after, limit: pageSize };
      const answer: Answer<ListResult> = await this.client.ask("list", { name: "", detail: "" }, (service) => service.list(request));
      if (answer.kind !== "value") return;
      for (const item of answer.value.items) {
        this.world.check(after === null || item.name > after, () => `list: ${item.name} behind ${after}`);
        found.add(item.name);
        after = item.name;
      }
      if (!answer.value.hasMore) break;
    }
    this.model.sawList(span, found);
  }

  /** Every page of a stream, from its start; null where it could not be read to its end. */
  async readWhole(name: string, patienceMs?: number): Promise<ReadPage | null> {
    let from: number | "start" = "start";
    for (;;) {
      const answer: Answer<ReadPage> = await this.read(name, from, WHOLE_PAGES, patienceMs);
      if (answer.kind !== "value") return null;
      if (answer.value.isUpToDate) return answer.value;
      from = answer.value.next;
    }
  }

  /** Notes when the tail was first known to be beyond `offset`. */
  #watchTail(streamId: number, offset: number): { readonly end: () => number | null } {
    let passedMs: number | null = null;
    const unwatch = this.model.stream(streamId).onFloor((floor) => {
      if (floor.nextOffset > offset) passedMs ??= this.world.nowMs;
    });
    return {
      end: () => {
        unwatch();
        return passedMs;
      },
    };
  }
}

function noteAnswer(batch: Batch, answer: Answer<unknown>): void {
  batch.underWay -= 1;
  if (answer.kind === "lost" || (answer.kind === "refused" && !isCertain(answer.error))) batch.isOpen = true;
}

function detailOf(batch: Batch | null): string {
  if (batch === null) return "";
  const { batchId, count, producer, closes } = batch.plan;
  const stamp = producer === null ? "" : ` by ${producer.producerId} ${producer.producerEpoch}/${producer.seq}`;
  return ` #${batchId}x${count}${stamp}${closes ? " closes" : ""}`;
}

/** Pages of an event stream: a `control` event, and the `data` event before it if there is one. */
import type { PageEvents } from "./live-reader.ts";
import type { SseEvent, SseParser } from "./sse-parser.ts";
import type { OpenAnswer } from "./transport.ts";

export class SsePages<SomePage> implements PageEvents<SomePage> {
  readonly #answer: OpenAnswer;
  readonly #parser: SseParser;
  readonly #toPage: (data: SseEvent | null, control: SseEvent) => SomePage;
  /** Parsed and not given on: at most what one chunk of the network completed. */
  #events: SseEvent[] = [];
  #data: SseEvent | null = null;

  constructor(answer: OpenAnswer, parser: SseParser, toPage: (data: SseEvent | null, control: SseEvent) => SomePage) {
    this.#answer = answer;
    this.#parser = parser;
    this.#toPage = toPage;
  }

  /** Data whose control event never came is dropped: only the control event tells where the reader stands then. */
  async next(): Promise<SomePage | null> {
    for (;;) {
      const event = this.#events.shift();
      if (event === undefined) {
        const chunk = await this.#answer.read();
        if (chunk === null) return null;
        this.#events = this.#parser.push(chunk);
      } else if (event.name === "data") {
        this.#data = event;
      } else if (event.name === "control") {
        const data = this.#data;
        this.#data = null;
        return this.#toPage(data, event);
      }
    }
  }

  close(): void {
    this.#answer.close();
  }
}

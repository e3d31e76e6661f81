/** An event stream as bytes, read as far as a test wants. */
const decoder = new TextDecoder();

export class EventReader {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #text = "";

  private constructor(chunks: AsyncIterator<Uint8Array>) {
    this.#chunks = chunks;
  }

  static async open(url: string, headers: Readonly<Record<string, string>>): Promise<EventReader> {
    // `timeout: false`: Bun would end a fetch that is silent for five minutes.
    const answer = await fetch(url, { headers, timeout: false } as RequestInit);
    if (answer.status !== 200 || answer.body === null) throw new Error(`${url} answered ${answer.status}`);
    return new EventReader(answer.body[Symbol.asyncIterator]());
  }

  /** Reads until the text has come. Throws if the stream ends before. */
  async until(text: string): Promise<void> {
    while (!this.#text.includes(text)) {
      const { done, value } = await this.#chunks.next();
      if (done) throw new Error(`the event stream ended before ${JSON.stringify(text)} came`);
      this.#text += decoder.decode(value, { stream: true });
    }
  }

  /** Reads to the end. */
  async end(): Promise<void> {
    while (!(await this.#chunks.next()).done);
  }
}

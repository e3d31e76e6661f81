/** A shell that a person types into: what it prints, errors and output alike, comes in one order. */

/** Long enough for a crowded machine. */
const OUTPUT_MS_MAX = 120_000;
const decoder = new TextDecoder();

export class Terminal {
  readonly #shell: Bun.Subprocess<"pipe", "pipe", "inherit">;
  #text = "";
  /** Lines before this are told already. */
  #seenLines = 0;
  #marks = 0;

  constructor(environment: Readonly<Record<string, string>>, folder: string) {
    // Job control would take signals of the shell's own; a person's shell has the streams joined as well.
    this.#shell = Bun.spawn(["bash", "-c", "exec bash --norc 2>&1"], { env: environment, cwd: folder, stdio: ["pipe", "pipe", "inherit"] });
    void this.#collect();
  }

  /** Types the commands. */
  type(commands: string): void {
    this.#shell.stdin.write(`${commands}\n`);
    this.#shell.stdin.flush();
  }

  /** Types the commands, and waits for the end of the last; what they printed, by lines. */
  async run(commands: string): Promise<string[]> {
    const mark = `--- done ${this.#marks++} ---`;
    this.type(`${commands}\necho '${mark}'`);
    const lines = await this.#until((unseen) => (unseen.includes(mark) ? unseen.slice(0, unseen.indexOf(mark)) : null));
    this.#seenLines += 1;
    return lines;
  }

  /** Waits for lines among others, in this order. */
  async among(expected: readonly string[]): Promise<void> {
    await this.#until((unseen) => {
      let end = 0;
      for (const line of expected) {
        const at = unseen.indexOf(line, end);
        if (at < 0) return null;
        end = at + 1;
      }
      return unseen.slice(0, end);
    });
  }

  async #until(find: (unseen: readonly string[]) => string[] | null): Promise<string[]> {
    for (const startedAtMs = performance.now(); performance.now() - startedAtMs < OUTPUT_MS_MAX; await Bun.sleep(20)) {
      const found = find(this.#unseen());
      if (found === null) continue;
      this.#seenLines += found.length;
      return found;
    }
    throw new Error(`the terminal did not print what was to come; it printed:\n${this.#text}`);
  }

  /** Whole lines only. */
  #unseen(): string[] {
    return this.#text.split("\n").slice(this.#seenLines, -1);
  }

  async #collect(): Promise<void> {
    for await (const chunk of this.#shell.stdout) this.#text += decoder.decode(chunk, { stream: true });
  }
}

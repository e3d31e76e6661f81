/**
 * The cases of the client, as data: they run under `bun test` (`client.test.ts`), under Node (`run-node.ts`) and in a web
 * page (`run-browser.ts`), and so use nothing that one of them lacks.
 */
import { DurableStreamsClient, isStreamError, PicoClient, type StreamError, type StreamErrorCode } from "../../src/client/index.ts";
import type { CaseStage, FaultRule, TestProxy, TestServer } from "./case-stage.ts";

export interface CaseContext {
  readonly server: TestServer;
  readonly pico: PicoClient;
  readonly durable: DurableStreamsClient;
  /** A stream name that no other case uses. */
  readonly name: string;
  /** A proxy before the Pico or the Durable Streams listener; closed with the case. */
  proxy(protocol: "pico" | "durable", rule: FaultRule): Promise<TestProxy>;
  /** A server of the case's own, to be killed or with flags of its own; removed with the case. */
  ownServer(flags?: readonly string[]): Promise<TestServer>;
}

export interface ClientCase {
  /** The fact, and its condition. */
  readonly name: string;
  /** Why it cannot hold in a web page; absent where it does. */
  readonly notInBrowser?: string;
  run(context: CaseContext): Promise<void>;
}

/** Short, so that ends of live answers are part of every live case. */
const FLAGS = ["--long-poll-timeout-sec", "1", "--sse-max-duration-sec", "1"];

/** The server that the cases share. */
export class ClientSuite {
  readonly #stage: CaseStage;
  readonly #server: TestServer;
  #names = 0;

  private constructor(stage: CaseStage, server: TestServer) {
    this.#stage = stage;
    this.#server = server;
  }

  static async start(stage: CaseStage): Promise<ClientSuite> {
    return new ClientSuite(stage, await stage.startServer(FLAGS));
  }

  async run(one: ClientCase): Promise<void> {
    const ends: (() => Promise<void>)[] = [];
    try {
      await one.run({
        server: this.#server,
        pico: new PicoClient({ url: this.#server.picoUrl }),
        durable: new DurableStreamsClient({ url: this.#server.durableStreamsUrl }),
        name: `/suite/${this.#names++}`,
        proxy: async (protocol, rule) => {
          const target = protocol === "pico" ? this.#server.picoUrl : this.#server.durableStreamsUrl;
          const proxy = await this.#stage.startProxy(target, rule);
          ends.push(() => proxy.close());
          return proxy;
        },
        ownServer: async (flags = []) => {
          const server = await this.#stage.startServer([...FLAGS, ...flags]);
          ends.push(() => server.remove());
          return server;
        },
      });
    } finally {
      for (const end of ends) await end();
    }
  }

  close(): Promise<void> {
    return this.#server.remove();
  }
}

/** The `StreamError` that a promise rejects with, which must have the code. */
export async function refusal(promise: Promise<unknown>, code: StreamErrorCode): Promise<StreamError> {
  const outcome = await promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if (!("error" in outcome)) throw new Error(`expected ${code}, but it succeeded with ${JSON.stringify(outcome.value)}`);
  if (isStreamError(outcome.error, code)) return outcome.error;
  throw new Error(`expected ${code}, got ${String(outcome.error)}`, { cause: outcome.error });
}

/** Resolves with the first so many items; ends the iteration. */
export async function take<T>(items: AsyncIterable<T>, count: number): Promise<T[]> {
  const taken: T[] = [];
  for await (const item of items) {
    taken.push(item);
    if (taken.length >= count) break;
  }
  return taken;
}

export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  return take(items, Number.POSITIVE_INFINITY);
}

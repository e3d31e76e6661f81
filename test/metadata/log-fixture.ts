/** Nodes' metadata logs on one database in memory and one manual clock. */
import { silentLogger } from "../../src/lib/log.ts";
import type { RegistrationName } from "../../src/lib/registration.ts";
import type { Command, Outcome } from "../../src/metadata/command.ts";
import { MetadataLog } from "../../src/metadata/metadata-log.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { SeededRandom } from "../support/seeded-random.ts";
import { MemoryDatabase, MemorySqlStore } from "./memory-sql-store.ts";
import { nodeName, PLAIN, registerCommand } from "./state-fixture.ts";

export interface TestNode {
  readonly log: MetadataLog;
  readonly store: MemorySqlStore;
  /** What `onFatal` was given. */
  readonly fatal: unknown[];
}

export class LogFixture {
  readonly clock = new ManualClock();
  readonly database = new MemoryDatabase(this.clock);
  readonly #nodes: TestNode[] = [];
  #seed = 1;

  /** A log that follows the database and has no registration. `prepare` sees its store before the first call. */
  async open(prepare: (store: MemorySqlStore) => void = () => undefined): Promise<TestNode> {
    const store = new MemorySqlStore(this.database);
    prepare(store);
    const fatal: unknown[] = [];
    this.#seed += 1;
    const log = await MetadataLog.open({
      store,
      clock: this.clock,
      random: new SeededRandom(this.#seed),
      logger: silentLogger,
      onFatal: (error) => fatal.push(error),
    });
    const node = { log, store, fatal };
    this.#nodes.push(node);
    return node;
  }

  /** A registered node whose loops run. */
  async node(name: RegistrationName, replaces: number | null = null): Promise<TestNode> {
    const node = await this.open();
    const outcome = await node.log.register(registerCommand(name, replaces), null);
    if (!outcome.applied) throw new Error(`register refused: ${outcome.code}`);
    node.log.start({ recovering: () => null, load: () => "{}" });
    await this.clock.advance(0);
    return node;
  }

  /** The database as it was `rows` log rows ago. */
  loseRows(rows: number): void {
    const head = this.database.statements.readLog(0, 1).head - rows;
    this.database.database.run(`DELETE FROM log WHERE log_index > ${head}`);
    this.database.database.run(`UPDATE log_head SET head = ${head}`);
  }

  async close(): Promise<void> {
    for (const { store } of this.#nodes) {
      store.faultOf = () => null;
      store.unhang();
    }
    const stopped = Promise.all(this.#nodes.map((node) => node.log.stop()));
    await this.clock.advance(60_000);
    await stopped;
    this.database.database.close();
  }
}

export function createCommand(streamId: number, name = `s/${streamId}`): Command {
  return { type: "create_stream", streamId, name, settings: PLAIN, isClosed: false, fork: null };
}

/** `pending`, `applied`, a refusal's code, or the code of the rejection. */
export function watch(outcome: Promise<Outcome>): { state: string } {
  const watched = { state: "pending" };
  outcome.then(
    (settled) => {
      watched.state = settled.applied ? "applied" : settled.code;
    },
    (error: { code?: string }) => {
      watched.state = `rejected ${error.code}`;
    },
  );
  return watched;
}

export const A = nodeName(1, 10);
export const B = nodeName(2, 10);

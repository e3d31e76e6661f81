/**
 * The SQL store on Postgres: the database that the nodes of a cluster share, on other hosts.
 *
 * Invariants:
 * - A call ends, by its answer or by a deadline. A write whose answer is missing is `unknown_outcome`, a read, and a call
 *   that was never sent, `database_failed`.
 * - What excludes other nodes is one statement (`postgres-schema.ts`): no lock is held while a node is waited for.
 */
import { assert } from "../lib/assert.ts";
import type { Clock } from "../lib/clock.ts";
import { HEARTBEAT_LOAD_BYTES_MAX, LOG_PAGE_BYTES, POSTGRES_TRUNCATE_ROWS } from "../lib/limits.ts";
import type { Random } from "../lib/random.ts";
import type { RegistrationName } from "../lib/registration.ts";
import type { PostgresOperation } from "./postgres-error.ts";
import { PostgresListener } from "./postgres-listener.ts";
import { PostgresPatience } from "./postgres-patience.ts";
import { formatPostgresPlace, type PostgresPlace } from "./postgres-place.ts";
import { PostgresPool } from "./postgres-pool.ts";
import { preparePostgresSchema, readPostgresSchema } from "./postgres-schema.ts";
import type { PostgresParameter, PostgresSession, PostgresTransaction, TransactionKind } from "./postgres-session.ts";
import { importIntoPostgres, readPostgresSnapshot, writePostgresSnapshot } from "./postgres-snapshot.ts";
import { arrayText, integer } from "./postgres-values.ts";
import type {
  BatchInsert,
  BatchOutcome,
  Heartbeat,
  ImportPart,
  Lease,
  LogPage,
  LogRow,
  SnapshotHead,
  SnapshotRow,
  SnapshotWrite,
  SqlStore,
} from "./sql-store.ts";

export interface PostgresStoreOptions {
  readonly place: PostgresPlace;
  readonly clock: Clock;
  readonly random: Random;
  /** Told once, when a server was found that may lose what it committed. */
  readonly onWarning?: (message: string) => void;
}

interface InsertColumns {
  readonly outcome: "inserted" | "exists" | "victim_alive";
  readonly at_index: number | null;
  readonly inserted_ms: number | null;
  readonly found_row_id: string | null;
  /** From 1. */
  readonly alive_victim: number | null;
}

interface PageColumns {
  readonly head: number;
  readonly first: number | null;
  /** Null, as what follows, where the page has no row. */
  readonly log_index: number | null;
  readonly at_ms: number;
  readonly row_id: string;
  readonly node_id: number;
  readonly node_epoch: number;
  readonly batch: number;
  readonly payload: Uint8Array;
}

interface LeaseColumns {
  readonly held: boolean;
  readonly holder_id: number | null;
  readonly holder_epoch: number | null;
  readonly lease_term: number;
  readonly expires_ms: number;
}

interface HeartbeatColumns {
  readonly node_id: number;
  readonly node_epoch: number;
  readonly counter: number;
  readonly applied_index: number;
  readonly recovering_node_id: number | null;
  readonly recovering_node_epoch: number | null;
  readonly load: string;
  readonly is_marked: boolean;
}

export class PostgresStore implements SqlStore {
  readonly description: string;
  readonly #pool: PostgresPool;
  /** Of heartbeats alone: behind slow calls one would come so late that others fence the node. */
  readonly #beats: PostgresPool;
  readonly #beatPatience = new PostgresPatience();
  readonly #fencePatience = new PostgresPatience();
  readonly #clock: Clock;
  readonly #listener: PostgresListener;
  readonly #wakes = new Set<() => void>();
  readonly #onWarning: (message: string) => void;
  #isWarned = false;
  /** Of the row that this store inserted last: its own notification tells nothing. */
  #insertedIndex = 0;

  constructor(options: PostgresStoreOptions) {
    const { place, clock, random } = options;
    this.description = formatPostgresPlace(place);
    this.#clock = clock;
    this.#onWarning = options.onWarning ?? (() => undefined);
    const onSession = (session: PostgresSession) => this.#look(session);
    this.#pool = new PostgresPool({ place, clock, onSession });
    this.#beats = new PostgresPool({ place: { ...place, connectionsMax: 1 }, clock, onSession });
    const onAppended = (index: number | null) => {
      if (index === null || index !== this.#insertedIndex) for (const wake of this.#wakes) wake();
    };
    this.#listener = new PostgresListener({ place, clock, random, onAppended });
  }

  async open(clusterIdentity: string): Promise<{ readonly clusterIdentity: string }> {
    const identity = await this.#transact("open", "write", (transaction) => preparePostgresSchema(transaction, clusterIdentity));
    return { clusterIdentity: identity };
  }

  /** Null: no cluster has used the database. Makes nothing. */
  async schemaVersion(): Promise<number | null> {
    return (await this.#transact("schemaVersion", "read", readPostgresSchema))?.version ?? null;
  }

  async nowMs(): Promise<number> {
    return (await this.#readOne<{ now_ms: number }>("nowMs", "SELECT pico.now_ms() AS now_ms")).now_ms;
  }

  async checkWrites(): Promise<void> {
    await this.#write("checkWrites", "UPDATE pico.lease SET term = term");
  }

  async insertBatch(insert: BatchInsert): Promise<BatchOutcome> {
    const { rowId, proposer, batch, payload, fences } = insert;
    const parameters = [
      rowId,
      ...nameParameters(proposer),
      integer(batch),
      payload,
      arrayText(fences.map(({ victim }) => victim.nodeId)),
      arrayText(fences.map(({ victim }) => victim.nodeEpoch)),
      arrayText(fences.map(({ counter }) => counter)),
    ];
    const isFence = fences.length > 0;
    const [row] = isFence
      ? await this.#writeSoon<InsertColumns>(this.#pool, this.#fencePatience, "insertBatch", INSERT, parameters)
      : await this.#write<InsertColumns>("insertBatch", INSERT, parameters);
    assert(row !== undefined, "an insert has one outcome");
    const outcome = toOutcome(row, insert);
    if (outcome.inserted) {
      this.#insertedIndex = outcome.index;
      // Apart from this call, so that no listener can turn a success into an error.
      for (const wake of this.#wakes) queueMicrotask(wake);
    }
    return outcome;
  }

  async readLog(after: number, limit: number): Promise<LogPage> {
    const rows = await this.#read<PageColumns>("readLog", SELECT_PAGE, [integer(after), integer(limit), LOG_PAGE_BYTES]);
    const [bounds] = rows;
    assert(bounds !== undefined, "a page has its bounds");
    const { head, first } = bounds;
    return { rows: rows.flatMap(toLogRow), first: first ?? head + 1, head };
  }

  async rowIdAt(index: number): Promise<string | null> {
    const [row] = await this.#read<{ row_id: string }>("rowIdAt", "SELECT row_id FROM pico.log WHERE log_index = $1", [integer(index)]);
    return row?.row_id ?? null;
  }

  readSnapshot(onRows: (rows: readonly SnapshotRow[], head: SnapshotHead) => void | Promise<void>): Promise<SnapshotHead> {
    return this.#transact("readSnapshot", "read", (transaction) => readPostgresSnapshot(transaction, onRows));
  }

  writeSnapshot(write: SnapshotWrite): Promise<boolean> {
    return this.#transact("writeSnapshot", "write", (transaction) => writePostgresSnapshot(transaction, write));
  }

  importPart(part: ImportPart): Promise<void> {
    return this.#transact("importPart", "write", (transaction) => importIntoPostgres(transaction, part));
  }

  async truncateLog(upTo: number, olderThanMs: number): Promise<number> {
    let total = 0;
    // In parts, each of which ends in time; what is left is a log all the same.
    for (let removed = POSTGRES_TRUNCATE_ROWS; removed === POSTGRES_TRUNCATE_ROWS; total += removed) {
      const [row] = await this.#write<{ removed: number }>("truncateLog", TRUNCATE_SOME, [integer(upTo), integer(olderThanMs)]);
      removed = row?.removed ?? 0;
    }
    return total;
  }

  async acquireLease(holder: RegistrationName, ttlMs: number): Promise<Lease> {
    const [row] = await this.#write<LeaseColumns>("acquireLease", "SELECT * FROM pico.acquire_lease($1, $2, $3)", [
      ...nameParameters(holder),
      integer(ttlMs),
    ]);
    assert(row !== undefined, "the lease has its row");
    return {
      held: row.held,
      holder: toRegistration(row.holder_id, row.holder_epoch),
      term: row.lease_term,
      expiresAtMs: row.expires_ms,
    };
  }

  async releaseLease(holder: RegistrationName): Promise<void> {
    await this.#write(
      "releaseLease",
      "UPDATE pico.lease SET node_id = NULL, node_epoch = NULL, expires_at_ms = 0 WHERE node_id = $1 AND node_epoch = $2",
      nameParameters(holder),
    );
  }

  async heartbeat(beat: Omit<Heartbeat, "isMarked">): Promise<{ readonly refused: boolean; readonly nowMs: number }> {
    assert(beat.counter >= 1, "heartbeats count from 1");
    assert(Buffer.byteLength(beat.load) <= HEARTBEAT_LOAD_BYTES_MAX, `load figures are at most ${HEARTBEAT_LOAD_BYTES_MAX} bytes`);
    const parameters = [
      ...nameParameters(beat.registration),
      integer(beat.counter),
      integer(beat.appliedIndex),
      ...(beat.recovering === null ? [null, null] : nameParameters(beat.recovering)),
      beat.load,
    ];
    const [row] = await this.#writeSoon<{ refused: boolean; beat_ms: number }>(
      this.#beats,
      this.#beatPatience,
      "heartbeat",
      BEAT,
      parameters,
    );
    assert(row !== undefined, "a heartbeat has one answer");
    return { refused: row.refused, nowMs: row.beat_ms };
  }

  async readHeartbeats(): Promise<readonly Heartbeat[]> {
    const rows = await this.#read<HeartbeatColumns>(
      "readHeartbeats",
      `SELECT node_id, node_epoch, counter, applied_index, recovering_node_id, recovering_node_epoch, load, is_marked
       FROM pico.heartbeats WHERE NOT is_removed ORDER BY node_id, node_epoch`,
    );
    return rows.map(toHeartbeat);
  }

  async removeHeartbeat(registration: RegistrationName): Promise<void> {
    await this.#write("removeHeartbeat", "SELECT pico.remove_heartbeat($1, $2)", nameParameters(registration));
  }

  /** The first one opens the connection that listens. */
  onAppended(wake: () => void): () => void {
    // Wrapped, so that one function given twice is called, and ended, twice.
    const entry = () => wake();
    this.#wakes.add(entry);
    this.#listener.start();
    return () => this.#wakes.delete(entry);
  }

  /** Waits for the calls under way and closes the connections. */
  async close(): Promise<void> {
    this.#wakes.clear();
    await Promise.all([this.#listener.stop(), this.#pool.close(), this.#beats.close()]);
  }

  #read<Row>(name: string, text: string, parameters: readonly PostgresParameter[] = []): Promise<readonly Row[]> {
    return this.#query<Row>({ name, mayCommit: false }, text, parameters);
  }

  async #readOne<Row>(name: string, text: string): Promise<Row> {
    const [row] = await this.#read<Row>(name, text);
    assert(row !== undefined, `${name} has one answer`);
    return row;
  }

  #write<Row>(name: string, text: string, parameters: readonly PostgresParameter[] = []): Promise<readonly Row[]> {
    return this.#query<Row>({ name, mayCommit: true }, text, parameters);
  }

  /** For what a failover depends on: given up where no answer comes soon. */
  #writeSoon<Row>(
    pool: PostgresPool,
    patience: PostgresPatience,
    name: string,
    text: string,
    parameters: readonly PostgresParameter[],
  ): Promise<readonly Row[]> {
    const operation: PostgresOperation = { name, mayCommit: true };
    return pool.run(operation, async (session, untilMs) => {
      try {
        const rows = await session.query<Row>(operation, text, parameters, Math.min(untilMs, this.#clock.monotonicMs() + patience.ms));
        patience.noteAnswer();
        return rows;
      } finally {
        if (session.isSilent) patience.noteSilence();
      }
    });
  }

  #query<Row>(operation: PostgresOperation, text: string, parameters: readonly PostgresParameter[]): Promise<readonly Row[]> {
    return this.#pool.run(operation, (session, untilMs) => session.query<Row>(operation, text, parameters, untilMs));
  }

  #transact<Result>(name: string, kind: TransactionKind, body: (transaction: PostgresTransaction) => Promise<Result>): Promise<Result> {
    const operation: PostgresOperation = { name, mayCommit: kind === "write" };
    return this.#pool.run(operation, (session) => session.transaction(operation, kind, body));
  }

  #look(session: PostgresSession): void {
    if (session.isDurable || this.#isWarned) return;
    this.#isWarned = true;
    this.#onWarning(`${this.description} runs with fsync = off: a power cut may lose what was committed, or all; set it to on`);
  }
}

const INSERT = "SELECT * FROM pico.insert_batch($1, $2, $3, $4, $5, $6::integer[], $7::bigint[], $8::bigint[])";

const BEAT = "SELECT * FROM pico.heartbeat($1, $2, $3, $4, $5, $6, $7)";

/** At least one row, with the bounds of the log; a first row of any size fits. One statement, so all of one state. */
const SELECT_PAGE = `
  WITH bounds AS (SELECT (SELECT head FROM pico.log_head) AS head, (SELECT min(log_index) FROM pico.log) AS first),
  page AS (
    SELECT log_index, at_ms, row_id, node_id, node_epoch, batch, payload, octet_length(payload) AS bytes,
      sum(octet_length(payload)) OVER (ORDER BY log_index) AS bytes_so_far
    FROM pico.log WHERE log_index > $1 ORDER BY log_index LIMIT $2)
  SELECT head, first, log_index, at_ms, row_id, node_id, node_epoch, batch, payload
  FROM bounds LEFT JOIN page ON bytes_so_far <= $3 OR bytes_so_far = bytes
  ORDER BY log_index`;

/** A clock that steps back makes a later row older; what goes must be a prefix all the same. Rows are dense. */
const TRUNCATE_SOME = `
  WITH removed AS (
    DELETE FROM pico.log WHERE log_index <= $1
      AND log_index < (SELECT min(log_index) FROM pico.log) + ${POSTGRES_TRUNCATE_ROWS}
      AND log_index < coalesce((SELECT min(log_index) FROM pico.log WHERE at_ms > pico.now_ms() - $2::bigint), $1 + 1)
    RETURNING 1)
  SELECT count(*) AS removed FROM removed`;

function nameParameters({ nodeId, nodeEpoch }: RegistrationName): readonly [number, number] {
  return [integer(nodeId), integer(nodeEpoch)];
}

function toOutcome(row: InsertColumns, { fences }: BatchInsert): BatchOutcome {
  const { outcome, at_index: index, inserted_ms: atMs, found_row_id: rowId, alive_victim: alive } = row;
  if (outcome === "victim_alive") {
    const victim = fences[(alive ?? 0) - 1]?.victim;
    assert(victim !== undefined, "the victim that lives is one of those named");
    return { inserted: false, reason: "victim_alive", victim };
  }
  assert(index !== null, "a row has its index");
  if (outcome === "exists") {
    assert(rowId !== null, "a row has its id");
    return { inserted: false, reason: "exists", index, rowId };
  }
  assert(atMs !== null, "a row has its time");
  return { inserted: true, index, atMs };
}

function toLogRow(row: PageColumns): LogRow[] {
  if (row.log_index === null) return [];
  return [
    {
      index: row.log_index,
      atMs: row.at_ms,
      rowId: row.row_id,
      proposer: { nodeId: row.node_id, nodeEpoch: row.node_epoch },
      batch: row.batch,
      payload: row.payload,
    },
  ];
}

function toRegistration(nodeId: number | null, nodeEpoch: number | null): RegistrationName | null {
  return nodeId === null || nodeEpoch === null ? null : { nodeId, nodeEpoch };
}

function toHeartbeat(row: HeartbeatColumns): Heartbeat {
  return {
    registration: { nodeId: row.node_id, nodeEpoch: row.node_epoch },
    counter: row.counter,
    appliedIndex: row.applied_index,
    recovering: toRegistration(row.recovering_node_id, row.recovering_node_epoch),
    load: row.load,
    isMarked: row.is_marked,
  };
}

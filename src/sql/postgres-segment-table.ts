/**
 * Segments of write-ahead logs as rows, `pico.wal_segments`. A number is created by its primary key, so that of those who
 * offer it one wins, and the others wait for the outcome. Each call is one statement.
 *
 * Schema and version are apart from those of a command log, which may be in another database.
 */
import type { Clock } from "../lib/clock.ts";
import { PicoError } from "../lib/errors.ts";
import { POSTGRES_TRIM_ROWS } from "../lib/limits.ts";
import type { RegistrationName } from "../lib/registration.ts";
import { formatPostgresPlace, type PostgresPlace } from "./postgres-place.ts";
import { PostgresPool } from "./postgres-pool.ts";
import { POSTGRES_SCHEMA_LOCK } from "./postgres-schema.ts";
import type { PostgresParameter, PostgresTransaction } from "./postgres-session.ts";
import { integer } from "./postgres-values.ts";

export const POSTGRES_SEGMENTS_VERSION = 1;

const TABLES: readonly string[] = [
  `CREATE TABLE pico.wal_schema (
     single integer PRIMARY KEY CHECK (single = 1),
     version integer NOT NULL
   )`,
  `CREATE TABLE pico.wal_segments (
     cluster_id text COLLATE "C" NOT NULL,
     node_id integer NOT NULL,
     node_epoch bigint NOT NULL,
     number bigint NOT NULL,
     is_tombstone boolean NOT NULL,
     bytes bytea NOT NULL,
     PRIMARY KEY (cluster_id, node_id, node_epoch, number)
   )`,
  // What lives for a minute is not worth compressing.
  "ALTER TABLE pico.wal_segments ALTER COLUMN bytes SET STORAGE EXTERNAL",
];

const OF_REGISTRATION = "cluster_id = $1 AND node_id = $2 AND node_epoch = $3";

export interface PostgresSegmentTableOptions {
  readonly place: PostgresPlace;
  readonly clusterId: string;
  readonly clock: Clock;
}

export class PostgresSegmentTable {
  /** For messages: `postgres://host:5432/database`. */
  readonly description: string;
  readonly #clusterId: string;
  readonly #pool: PostgresPool;
  #isDurable = true;

  constructor({ place, clusterId, clock }: PostgresSegmentTableOptions) {
    this.description = formatPostgresPlace(place);
    this.#clusterId = clusterId;
    const onSession = ({ isDurable }: { readonly isDurable: boolean }) => {
      if (!isDurable) this.#isDurable = false;
    };
    this.#pool = new PostgresPool({ place, clock, onSession });
  }

  /** False once a server was found that may lose what it committed. */
  get isDurable(): boolean {
    return this.#isDurable;
  }

  /** Creates the tables. Throws `incompatible` for those of a later program. */
  async open(): Promise<void> {
    const operation = { name: "opening the WAL", mayCommit: true };
    await this.#pool.run(operation, (session) => session.transaction(operation, "write", prepareTables));
  }

  /** Whether a WAL has been here. Makes nothing. */
  async isPrepared(): Promise<boolean> {
    const text = "SELECT to_regclass('pico.wal_schema') IS NOT NULL AS is_there";
    const [row] = await this.#run<{ is_there: boolean }>("looking for a WAL", false, text, []);
    return row?.is_there === true;
  }

  /**
   * False where the number is taken. `unknown_outcome`: it may be, by these very bytes. What is there is locked and left as
   * it is, so that the answer waits for the standbys as an insert would: the one before may have been cut short.
   */
  async create(registration: RegistrationName, number: number, bytes: Uint8Array, isTombstone: boolean): Promise<boolean> {
    const rows = await this.#run(
      "createSegment",
      true,
      `INSERT INTO pico.wal_segments (cluster_id, node_id, node_epoch, number, is_tombstone, bytes)
       VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (cluster_id, node_id, node_epoch, number) DO UPDATE SET number = excluded.number WHERE false
       RETURNING true AS is_created`,
      [...this.#keyOf(registration), integer(number), isTombstone, bytes],
    );
    return rows.length > 0;
  }

  async registrations(): Promise<readonly (RegistrationName & { readonly hasSegments: boolean })[]> {
    const rows = await this.#run<{ node_id: number; node_epoch: number; has_segments: boolean }>(
      "listRegistrations",
      false,
      `SELECT node_id, node_epoch, bool_or(NOT is_tombstone) AS has_segments FROM pico.wal_segments
       WHERE cluster_id = $1 GROUP BY node_id, node_epoch`,
      [this.#clusterId],
    );
    return rows.map((row) => ({ nodeId: row.node_id, nodeEpoch: row.node_epoch, hasSegments: row.has_segments }));
  }

  /** Numbers above `above`, ascending. */
  async list(registration: RegistrationName, above: number): Promise<readonly number[]> {
    const rows = await this.#run<{ number: number }>(
      "listSegments",
      false,
      `SELECT number FROM pico.wal_segments WHERE ${OF_REGISTRATION} AND number > $4 ORDER BY number`,
      [...this.#keyOf(registration), integer(above)],
    );
    return rows.map(({ number }) => number);
  }

  async read(registration: RegistrationName, number: number): Promise<Uint8Array | null> {
    const [row] = await this.#run<{ bytes: Uint8Array }>(
      "readSegment",
      false,
      `SELECT bytes FROM pico.wal_segments WHERE ${OF_REGISTRATION} AND number = $4`,
      [...this.#keyOf(registration), integer(number)],
    );
    return row?.bytes ?? null;
  }

  /** Removes the lowest segments up to `upTo`, tombstones never. False once none is left. */
  async trimSome(registration: RegistrationName, upTo: number): Promise<boolean> {
    const rows = await this.#run(
      "trimSegments",
      true,
      `DELETE FROM pico.wal_segments WHERE ${OF_REGISTRATION} AND NOT is_tombstone AND number IN (
         SELECT number FROM pico.wal_segments WHERE ${OF_REGISTRATION} AND NOT is_tombstone AND number <= $4
         ORDER BY number LIMIT ${POSTGRES_TRIM_ROWS})
       RETURNING number`,
      [...this.#keyOf(registration), integer(upTo)],
    );
    return rows.length === POSTGRES_TRIM_ROWS;
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  #keyOf({ nodeId, nodeEpoch }: RegistrationName): readonly [string, number, number] {
    return [this.#clusterId, integer(nodeId), integer(nodeEpoch)];
  }

  #run<Row>(name: string, mayCommit: boolean, text: string, parameters: readonly PostgresParameter[]): Promise<readonly Row[]> {
    const operation = { name, mayCommit };
    return this.#pool.run(operation, (session, untilMs) => session.query<Row>(operation, text, parameters, untilMs));
  }
}

async function prepareTables(transaction: PostgresTransaction): Promise<void> {
  await transaction.query(`SELECT pg_advisory_xact_lock(${POSTGRES_SCHEMA_LOCK})`);
  const [found] = await transaction.query<{ has_tables: boolean; has_schema: boolean }>(
    "SELECT to_regclass('pico.wal_schema') IS NOT NULL AS has_tables, to_regnamespace('pico') IS NOT NULL AS has_schema",
  );
  if (found?.has_tables === true) {
    const [schema] = await transaction.query<{ version: number }>("SELECT version FROM pico.wal_schema");
    const version = schema?.version ?? 0;
    if (version <= POSTGRES_SEGMENTS_VERSION) return;
    throw new PicoError(
      "incompatible",
      `the WAL in the database has schema version ${version}, this program reads up to ${POSTGRES_SEGMENTS_VERSION}; use a later program`,
      { version, versionMax: POSTGRES_SEGMENTS_VERSION },
    );
  }
  if (found?.has_schema !== true) await transaction.query("CREATE SCHEMA pico");
  for (const statement of TABLES) await transaction.query(statement);
  await transaction.query("INSERT INTO pico.wal_schema (single, version) VALUES (1, $1)", [POSTGRES_SEGMENTS_VERSION]);
}

/**
 * The tables in SQLite. `STRICT`, so that no column takes a value of another type; whole numbers are
 * signed 64-bit. A table that holds one row has the key `only`, which is 1.
 *
 * The version is that of the whole schema. A program refuses a higher one before it writes anything.
 */
import type { Database } from "bun:sqlite";
import { PicoError } from "../lib/errors.ts";
import { toNumber } from "./sqlite-transaction.ts";

export const SQLITE_SCHEMA_VERSION = 1;

const TABLES: readonly string[] = [
  `CREATE TABLE pico_schema (
     only INTEGER PRIMARY KEY CHECK (only = 1),
     version INTEGER NOT NULL,
     cluster_identity TEXT NOT NULL
   ) STRICT`,
  // Apart from the rows, so that a truncated log goes on where it was.
  `CREATE TABLE log_head (
     only INTEGER PRIMARY KEY CHECK (only = 1),
     head INTEGER NOT NULL
   ) STRICT`,
  `CREATE TABLE log (
     log_index INTEGER PRIMARY KEY,
     at_ms INTEGER NOT NULL,
     row_id TEXT NOT NULL,
     node_id INTEGER NOT NULL,
     node_epoch INTEGER NOT NULL,
     batch INTEGER NOT NULL,
     payload BLOB NOT NULL,
     UNIQUE (node_id, node_epoch, batch)
   ) STRICT`,
  // The sum is an unsigned 64-bit number, in hex because SQLite has only signed ones.
  `CREATE TABLE snapshot_head (
     only INTEGER PRIMARY KEY CHECK (only = 1),
     snapshot_index INTEGER NOT NULL,
     row_id TEXT NOT NULL,
     row_count INTEGER NOT NULL,
     row_sum TEXT NOT NULL
   ) STRICT`,
  `CREATE TABLE snapshot_rows (
     key TEXT PRIMARY KEY,
     value BLOB NOT NULL
   ) STRICT, WITHOUT ROWID`,
  `CREATE TABLE lease (
     only INTEGER PRIMARY KEY CHECK (only = 1),
     node_id INTEGER,
     node_epoch INTEGER,
     term INTEGER NOT NULL,
     expires_at_ms INTEGER NOT NULL
   ) STRICT`,
  // A removed row stays, unseen, until a later life of the node has one: it refuses late heartbeats.
  `CREATE TABLE heartbeats (
     node_id INTEGER NOT NULL,
     node_epoch INTEGER NOT NULL,
     counter INTEGER NOT NULL,
     applied_index INTEGER NOT NULL,
     recovering_node_id INTEGER,
     recovering_node_epoch INTEGER,
     load TEXT NOT NULL,
     is_marked INTEGER NOT NULL,
     is_removed INTEGER NOT NULL,
     PRIMARY KEY (node_id, node_epoch)
   ) STRICT, WITHOUT ROWID`,
];

/**
 * Makes the tables in a fresh database, within the caller's transaction, and returns the identity of the
 * cluster that the database belongs to. Throws `incompatible` for a schema of a later program.
 */
export function prepareSqliteSchema(database: Database, clusterIdentity: string): string {
  const isFresh = database.query("SELECT 1 FROM sqlite_schema WHERE name = 'pico_schema'").get() === null;
  if (isFresh) {
    for (const table of TABLES) database.run(table);
    database.run("INSERT INTO pico_schema (only, version, cluster_identity) VALUES (1, ?, ?)", [SQLITE_SCHEMA_VERSION, clusterIdentity]);
    database.run("INSERT INTO log_head (only, head) VALUES (1, 0)");
    database.run("INSERT INTO snapshot_head (only, snapshot_index, row_id, row_count, row_sum) VALUES (1, 0, '', 0, '0')");
    database.run("INSERT INTO lease (only, term, expires_at_ms) VALUES (1, 0, 0)");
    return clusterIdentity;
  }
  const schema = database
    .query<{ version: bigint; cluster_identity: string }, []>("SELECT version, cluster_identity FROM pico_schema")
    .get();
  if (schema === null) throw new PicoError("corrupt", "the database has a schema table without its row", { where: "pico_schema" });
  const version = toNumber(schema.version);
  if (version > SQLITE_SCHEMA_VERSION) {
    throw new PicoError(
      "incompatible",
      `the database has schema version ${version}, this program reads up to ${SQLITE_SCHEMA_VERSION}; use a later program`,
      { version, versionMax: SQLITE_SCHEMA_VERSION },
    );
  }
  return schema.cluster_identity;
}

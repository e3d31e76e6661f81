/**
 * Tables and functions in Postgres, all in the schema `pico`. A table that holds one row has the key `single`, which is 1.
 *
 * What must exclude others is a function: one statement, so that the server alone runs its transaction from the first
 * lock to the commit. A node that is frozen or cut off between two statements would keep everybody else waiting. Each
 * statement inside of a function sees what was committed before that statement, so a look behind a lock is true.
 *
 * The version is that of the whole schema. A program refuses a higher one before it writes anything. A later version may
 * add tables, columns and functions; what nodes of an earlier one call stays.
 */
import { PicoError } from "../lib/errors.ts";
import type { PostgresTransaction } from "./postgres-session.ts";

export const POSTGRES_SCHEMA_VERSION = 1;

/** Notified at each insert, with the index. */
export const POSTGRES_LOG_CHANNEL = "pico_log";

/** Keys of advisory locks, which are those of one database. The first number is ours, "pico". */
export const POSTGRES_SCHEMA_LOCK = "1885954927, 1";
/** Heartbeats share it; a fence takes it alone. */
const HEARTBEATS_LOCK = "1885954927, 2";

const TABLES: readonly string[] = [
  `CREATE TABLE pico.pico_schema (
     single integer PRIMARY KEY CHECK (single = 1),
     version integer NOT NULL,
     cluster_identity text NOT NULL
   )`,
  // Apart from the rows, so that a truncated log goes on where it was; and the lock that orders all inserts.
  `CREATE TABLE pico.log_head (
     single integer PRIMARY KEY CHECK (single = 1),
     head bigint NOT NULL
   )`,
  `CREATE TABLE pico.log (
     log_index bigint PRIMARY KEY,
     at_ms bigint NOT NULL,
     row_id text NOT NULL,
     node_id integer NOT NULL,
     node_epoch bigint NOT NULL,
     batch bigint NOT NULL,
     payload bytea NOT NULL,
     UNIQUE (node_id, node_epoch, batch)
   )`,
  // The sum is an unsigned 64-bit number, in hex because Postgres has only signed ones.
  `CREATE TABLE pico.snapshot_head (
     single integer PRIMARY KEY CHECK (single = 1),
     snapshot_index bigint NOT NULL,
     row_id text NOT NULL,
     row_count bigint NOT NULL,
     row_sum text NOT NULL
   )`,
  `CREATE TABLE pico.snapshot_rows (
     key text COLLATE "C" PRIMARY KEY,
     value bytea NOT NULL
   )`,
  `CREATE TABLE pico.lease (
     single integer PRIMARY KEY CHECK (single = 1),
     node_id integer,
     node_epoch bigint,
     term bigint NOT NULL,
     expires_at_ms bigint NOT NULL
   )`,
  // A removed row stays, unseen, until a later life of the node has one: it refuses late heartbeats.
  `CREATE TABLE pico.heartbeats (
     node_id integer NOT NULL,
     node_epoch bigint NOT NULL,
     counter bigint NOT NULL,
     applied_index bigint NOT NULL,
     recovering_node_id integer,
     recovering_node_epoch bigint,
     load text NOT NULL,
     is_marked boolean NOT NULL,
     is_removed boolean NOT NULL,
     PRIMARY KEY (node_id, node_epoch)
   )`,
];

const FUNCTIONS: readonly string[] = [
  // The time of this call, not that of the transaction's begin: it may have waited for a lock since.
  `CREATE FUNCTION pico.now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS $$
     SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
   $$`,
  // A fence marked the registration's row, or a later life of its node has one.
  `CREATE FUNCTION pico.is_over(id integer, epoch bigint) RETURNS boolean LANGUAGE sql VOLATILE AS $$
     SELECT EXISTS (SELECT 1 FROM pico.heartbeats WHERE node_id = id AND (node_epoch > epoch OR (node_epoch = epoch AND is_marked)))
   $$`,
  // Makes a row where the registration never had a heartbeat.
  `CREATE FUNCTION pico.mark(id integer, epoch bigint) RETURNS void LANGUAGE sql VOLATILE AS $$
     INSERT INTO pico.heartbeats (node_id, node_epoch, counter, applied_index, load, is_marked, is_removed)
     VALUES (id, epoch, 0, 0, '{}', true, false) ON CONFLICT (node_id, node_epoch) DO UPDATE SET is_marked = true
   $$`,
  // A counter that is null marks whatever is there; an absent row counts as 0.
  `CREATE FUNCTION pico.insert_batch(
     new_row_id text, proposer_id integer, proposer_epoch bigint, batch_number bigint, batch_payload bytea,
     victim_ids integer[], victim_epochs bigint[], victim_counters bigint[],
     OUT outcome text, OUT at_index bigint, OUT inserted_ms bigint, OUT found_row_id text, OUT alive_victim integer
   ) LANGUAGE plpgsql VOLATILE AS $$
   DECLARE
     victim_count integer := cardinality(victim_ids);
   BEGIN
     -- One at a time, until its commit: else a reader could see row n + 1 before row n.
     PERFORM 1 FROM pico.log_head FOR UPDATE;
     SELECT log_index, row_id INTO at_index, found_row_id FROM pico.log
       WHERE node_id = proposer_id AND node_epoch = proposer_epoch AND batch = batch_number;
     IF FOUND THEN
       outcome := 'exists';
       RETURN;
     END IF;
     IF victim_count > 0 THEN
       -- Behind it every heartbeat is either seen here, or will see the mark.
       PERFORM pg_advisory_xact_lock(${HEARTBEATS_LOCK});
       FOR victim IN 1 .. victim_count LOOP
         IF victim_counters[victim] <> coalesce(
           (SELECT counter FROM pico.heartbeats WHERE node_id = victim_ids[victim] AND node_epoch = victim_epochs[victim]), 0)
         THEN
           outcome := 'victim_alive';
           alive_victim := victim;
           RETURN;
         END IF;
       END LOOP;
       FOR victim IN 1 .. victim_count LOOP
         PERFORM pico.mark(victim_ids[victim], victim_epochs[victim]);
       END LOOP;
     END IF;
     UPDATE pico.log_head SET head = head + 1 RETURNING head INTO at_index;
     inserted_ms := pico.now_ms();
     INSERT INTO pico.log (log_index, at_ms, row_id, node_id, node_epoch, batch, payload)
       VALUES (at_index, inserted_ms, new_row_id, proposer_id, proposer_epoch, batch_number, batch_payload);
     PERFORM pg_notify('${POSTGRES_LOG_CHANNEL}', at_index::text);
     outcome := 'inserted';
   END $$`,
  // One that comes late, behind a later one of its registration, takes nothing back.
  `CREATE FUNCTION pico.heartbeat(
     beat_id integer, beat_epoch bigint, beat_counter bigint, beat_applied bigint,
     beat_recovering_id integer, beat_recovering_epoch bigint, beat_load text,
     OUT refused boolean, OUT beat_ms bigint
   ) LANGUAGE plpgsql VOLATILE AS $$
   BEGIN
     PERFORM pg_advisory_xact_lock_shared(${HEARTBEATS_LOCK});
     beat_ms := pico.now_ms();
     refused := pico.is_over(beat_id, beat_epoch);
     IF refused THEN
       RETURN;
     END IF;
     INSERT INTO pico.heartbeats AS kept
       (node_id, node_epoch, counter, applied_index, recovering_node_id, recovering_node_epoch, load, is_marked, is_removed)
       VALUES (beat_id, beat_epoch, beat_counter, beat_applied, beat_recovering_id, beat_recovering_epoch, beat_load, false, false)
       ON CONFLICT (node_id, node_epoch) DO UPDATE SET
         counter = greatest(kept.counter, excluded.counter),
         applied_index = greatest(kept.applied_index, excluded.applied_index),
         recovering_node_id = excluded.recovering_node_id,
         recovering_node_epoch = excluded.recovering_node_epoch,
         load = excluded.load
       WHERE NOT kept.is_marked;
     -- A removal may have marked it since the look.
     refused := NOT FOUND;
   END $$`,
  `CREATE FUNCTION pico.remove_heartbeat(gone_id integer, gone_epoch bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
   BEGIN
     PERFORM pico.mark(gone_id, gone_epoch);
     UPDATE pico.heartbeats SET is_removed = true WHERE node_id = gone_id AND node_epoch = gone_epoch;
     -- The row of a later life refuses them too.
     DELETE FROM pico.heartbeats AS former WHERE is_removed AND EXISTS
       (SELECT 1 FROM pico.heartbeats AS later WHERE later.node_id = former.node_id AND later.node_epoch > former.node_epoch);
   END $$`,
  `CREATE FUNCTION pico.acquire_lease(
     asker_id integer, asker_epoch bigint, ttl_ms bigint,
     OUT held boolean, OUT holder_id integer, OUT holder_epoch bigint, OUT lease_term bigint, OUT expires_ms bigint
   ) LANGUAGE plpgsql VOLATILE AS $$
   DECLARE
     current_ms bigint;
     is_own boolean;
   BEGIN
     SELECT node_id, node_epoch, term, expires_at_ms INTO holder_id, holder_epoch, lease_term, expires_ms FROM pico.lease FOR UPDATE;
     current_ms := pico.now_ms();
     is_own := (holder_id, holder_epoch) IS NOT DISTINCT FROM (asker_id, asker_epoch);
     held := (holder_id IS NULL OR is_own OR current_ms >= expires_ms OR pico.is_over(holder_id, holder_epoch))
       AND NOT pico.is_over(asker_id, asker_epoch);
     IF NOT held THEN
       RETURN;
     END IF;
     holder_id := asker_id;
     holder_epoch := asker_epoch;
     lease_term := lease_term + CASE WHEN is_own THEN 0 ELSE 1 END;
     expires_ms := current_ms + ttl_ms;
     UPDATE pico.lease SET node_id = holder_id, node_epoch = holder_epoch, term = lease_term, expires_at_ms = expires_ms;
   END $$`,
];

/** Null: the database has no schema of ours. */
export async function readPostgresSchema(
  transaction: PostgresTransaction,
): Promise<{ readonly version: number; readonly clusterIdentity: string } | null> {
  const [found] = await transaction.query<{ found: string | null }>("SELECT to_regclass('pico.pico_schema')::text AS found");
  if (found === undefined || found.found === null) return null;
  const [schema] = await transaction.query<{ version: number; cluster_identity: string }>(
    "SELECT version, cluster_identity FROM pico.pico_schema",
  );
  if (schema === undefined) throw new PicoError("corrupt", "the database has a schema table without its row", { where: "pico_schema" });
  return { version: schema.version, clusterIdentity: schema.cluster_identity };
}

/**
 * Makes the tables in a fresh database, within the caller's transaction, and returns the identity of the cluster that
 * the database belongs to. One at a time, so that of nodes that start together one makes them. Throws `incompatible` for a
 * schema of a later program.
 */
export async function preparePostgresSchema(transaction: PostgresTransaction, clusterIdentity: string): Promise<string> {
  await transaction.query(`SELECT pg_advisory_xact_lock(${POSTGRES_SCHEMA_LOCK})`);
  const schema = await readPostgresSchema(transaction);
  if (schema === null) {
    await makeSchema(transaction, clusterIdentity);
    return clusterIdentity;
  }
  const { version } = schema;
  if (version > POSTGRES_SCHEMA_VERSION) {
    throw new PicoError(
      "incompatible",
      `the database has schema version ${version}, this program reads up to ${POSTGRES_SCHEMA_VERSION}; use a later program`,
      { version, versionMax: POSTGRES_SCHEMA_VERSION },
    );
  }
  return schema.clusterIdentity;
}

async function makeSchema(transaction: PostgresTransaction, clusterIdentity: string): Promise<void> {
  // Where an administrator made it for a user who may not, the statement would be refused all the same.
  const [made] = await transaction.query<{ is_there: boolean }>("SELECT to_regnamespace('pico') IS NOT NULL AS is_there");
  if (made?.is_there !== true) await transaction.query("CREATE SCHEMA pico");
  for (const statement of [...TABLES, ...FUNCTIONS]) await transaction.query(statement);
  await transaction.query("INSERT INTO pico.pico_schema (single, version, cluster_identity) VALUES (1, $1, $2)", [
    POSTGRES_SCHEMA_VERSION,
    clusterIdentity,
  ]);
  await transaction.query("INSERT INTO pico.log_head (single, head) VALUES (1, 0)");
  await transaction.query("INSERT INTO pico.snapshot_head (single, snapshot_index, row_id, row_count, row_sum) VALUES (1, 0, '', 0, '0')");
  await transaction.query("INSERT INTO pico.lease (single, term, expires_at_ms) VALUES (1, 0, 0)");
}

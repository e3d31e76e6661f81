/** Reading and writing a whole snapshot in Postgres: transactions of many statements. */
import { PicoError } from "../lib/errors.ts";
import { POSTGRES_WRITE_BYTES, POSTGRES_WRITE_ROWS, SNAPSHOT_PAGE_ROWS } from "../lib/limits.ts";
import type { PostgresTransaction } from "./postgres-session.ts";
import { arrayText, integer } from "./postgres-values.ts";
import type { ImportPart, LogRow, SnapshotHead, SnapshotRow, SnapshotWrite } from "./sql-store.ts";

interface HeadColumns {
  readonly snapshot_index: number;
  readonly row_id: string;
  readonly row_count: number;
  readonly row_sum: string;
}

const SELECT_HEAD = "SELECT snapshot_index, row_id, row_count, row_sum FROM pico.snapshot_head";

/** Head and rows of one consistent state, in pages; the next one is asked for when `onRows` is through with one. */
export async function readPostgresSnapshot(
  transaction: PostgresTransaction,
  onRows: (rows: readonly SnapshotRow[], head: SnapshotHead) => void | Promise<void>,
): Promise<SnapshotHead> {
  const head = toHead(await transaction.query<HeadColumns>(SELECT_HEAD));
  await transaction.query("DECLARE snapshot NO SCROLL CURSOR FOR SELECT key, value FROM pico.snapshot_rows");
  for (;;) {
    const rows = await transaction.query<SnapshotRow>(`FETCH ${SNAPSHOT_PAGE_ROWS} FROM snapshot`);
    if (rows.length === 0) return head;
    await onRows([...rows], head);
  }
}

/** False where another snapshot came first. The row of the head is locked until the end of the transaction. */
export async function writePostgresSnapshot(transaction: PostgresTransaction, write: SnapshotWrite): Promise<boolean> {
  const present = toHead(await transaction.query<HeadColumns>(`${SELECT_HEAD} FOR UPDATE`));
  if (present.index !== write.expectedIndex) return false;
  for (const keys of partsOf(write.deletes, (key) => key.length)) {
    await transaction.query("DELETE FROM pico.snapshot_rows WHERE key = ANY ($1::text[])", [arrayText(keys)]);
  }
  for (const rows of partsOf(write.upserts, bytesOfRow)) {
    await putRows(transaction, rows, "ON CONFLICT (key) DO UPDATE SET value = excluded.value");
  }
  await putHead(transaction, write.head);
  return true;
}

/** Throws `corrupt` where the part does not follow what is there, or a node has used the database. */
export async function importIntoPostgres(transaction: PostgresTransaction, part: ImportPart): Promise<void> {
  const [lease] = await transaction.query<{ term: number }>("SELECT term FROM pico.lease FOR UPDATE");
  if (lease === undefined || lease.term > 0) throw notImported("a node has used the database");
  for (const rows of partsOf(part.snapshotRows, bytesOfRow)) await putRows(transaction, rows, "");
  if (part.snapshotHead !== null) await putHead(transaction, part.snapshotHead);
  const [log] = await transaction.query<{ head: number }>("SELECT head FROM pico.log_head FOR UPDATE");
  let head = log?.head ?? 0;
  for (const row of part.logRows) {
    if (head > 0 && row.index !== head + 1) throw notImported(`log row ${row.index} does not follow ${head}`);
    head = row.index;
  }
  for (const rows of partsOf(part.logRows, (row) => row.payload.length)) await putLogRows(transaction, rows);
  await transaction.query("UPDATE pico.log_head SET head = $1", [integer(head)]);
}

function toHead([head]: readonly HeadColumns[]): SnapshotHead {
  if (head === undefined) throw new PicoError("corrupt", "the database has no snapshot head", { where: "snapshot_head" });
  return { index: head.snapshot_index, rowId: head.row_id, rowCount: head.row_count, rowSum: BigInt(`0x${head.row_sum}`) };
}

async function putHead(transaction: PostgresTransaction, head: SnapshotHead): Promise<void> {
  await transaction.query("UPDATE pico.snapshot_head SET snapshot_index = $1, row_id = $2, row_count = $3, row_sum = $4", [
    integer(head.index),
    head.rowId,
    integer(head.rowCount),
    head.rowSum.toString(16),
  ]);
}

async function putRows(transaction: PostgresTransaction, rows: readonly SnapshotRow[], onConflict: string): Promise<void> {
  await transaction.query(
    `INSERT INTO pico.snapshot_rows (key, value) SELECT key, value FROM unnest($1::text[], $2::bytea[]) AS part (key, value) ${onConflict}`,
    [arrayText(rows.map(({ key }) => key)), arrayText(rows.map(({ value }) => value))],
  );
}

async function putLogRows(transaction: PostgresTransaction, rows: readonly LogRow[]): Promise<void> {
  await transaction.query(
    `INSERT INTO pico.log (log_index, at_ms, row_id, node_id, node_epoch, batch, payload)
     SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::integer[], $5::bigint[], $6::bigint[], $7::bytea[])`,
    [
      arrayText(rows.map(({ index }) => index)),
      arrayText(rows.map(({ atMs }) => atMs)),
      arrayText(rows.map(({ rowId }) => rowId)),
      arrayText(rows.map(({ proposer }) => proposer.nodeId)),
      arrayText(rows.map(({ proposer }) => proposer.nodeEpoch)),
      arrayText(rows.map(({ batch }) => batch)),
      arrayText(rows.map(({ payload }) => payload)),
    ],
  );
}

function bytesOfRow({ key, value }: SnapshotRow): number {
  return key.length + value.length;
}

/** Parts that one statement each takes. */
function* partsOf<Item>(items: readonly Item[], bytesOf: (item: Item) => number): Generator<readonly Item[]> {
  let part: Item[] = [];
  let bytes = 0;
  for (const item of items) {
    bytes += bytesOf(item);
    if (part.length > 0 && (part.length >= POSTGRES_WRITE_ROWS || bytes > POSTGRES_WRITE_BYTES)) {
      yield part;
      part = [];
      bytes = bytesOf(item);
    }
    part.push(item);
  }
  if (part.length > 0) yield part;
}

function notImported(why: string): PicoError {
  return new PicoError("corrupt", `the restored rows do not fit the database: ${why}`, { where: "import" });
}

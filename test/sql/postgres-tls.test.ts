/** Connections by TLS, to a server with a certificate of its own for `localhost`. */
import { beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, chownSync, statSync } from "node:fs";
import { join } from "node:path";
import type { PostgresServer } from "../../scripts/postgres.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { isPicoError } from "../../src/lib/errors.ts";
import type { PostgresPlace, PostgresTls } from "../../src/sql/postgres-place.ts";
import { PostgresSession } from "../../src/sql/postgres-session.ts";
import { describeOnPostgres } from "../support/postgres.ts";
import { testPlace } from "./postgres-place.ts";

const QUERY = { name: "asking", mayCommit: false };
const NO_FILES = { rootCertificatePath: null, certificatePath: null, keyPath: null };

/** Whether the connection is encrypted, or the message of what kept it from being made. */
async function connect(server: PostgresServer, tls: Partial<PostgresTls>, changes: Partial<PostgresPlace> = {}): Promise<boolean | string> {
  const place = testPlace(server, { tls: { mode: "prefer", ...NO_FILES, ...tls }, ...changes });
  try {
    const session = await PostgresSession.open({ place, clock: systemClock });
    const [row] = await session.query<{ ssl: boolean }>(QUERY, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()");
    await session.close();
    return row?.ssl ?? "no answer";
  } catch (error) {
    if (isPicoError(error, "database_failed")) return error.message;
    throw error;
  }
}

describeOnPostgres("Postgres without TLS", (server) => {
  test("is taken as it is, unless TLS is required", async () => {
    for (const mode of ["disable", "prefer"] as const) expect([mode, await connect(server(), { mode })]).toEqual([mode, false]);
    for (const mode of ["require", "verify-ca", "verify-full"] as const) {
      expect([mode, await connect(server(), { mode })]).toEqual([mode, expect.stringContaining("connecting failed")]);
    }
  });
});

const hasTool = Bun.which("openssl") !== null || process.env.CI !== undefined;
if (!hasTool) console.log("skipped: Postgres with TLS: no openssl to make a certificate with");

const describeWithTls = hasTool ? describeOnPostgres : describe.skip;
describeWithTls("Postgres with TLS", (server: () => PostgresServer) => {
  let rootCertificatePath = "";
  beforeAll(async () => {
    const admin = server().client();
    const [found] = await admin<{ data_directory: string }[]>`SHOW data_directory`;
    const folder = found?.data_directory ?? "";
    const [certificate, key] = [join(folder, "server.crt"), join(folder, "server.key")];
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
    const words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", ...subject];
    const child = Bun.spawn(["openssl", ...words, "-keyout", key, "-out", certificate], { stdio: ["ignore", "ignore", "pipe"] });
    if ((await child.exited) !== 0) throw new Error(`openssl failed: ${await child.stderr.text()}`);
    const { uid, gid } = statSync(folder);
    for (const path of [certificate, key]) chownSync(path, uid, gid);
    chmodSync(key, 0o600);
    await admin.unsafe("ALTER SYSTEM SET ssl = on");
    await admin`SELECT pg_reload_conf()`;
    await admin.end();
    rootCertificatePath = certificate;
    while ((await connect(server(), { mode: "prefer" })) !== true) await Bun.sleep(20);
  }, 60_000);

  const named = () => ({ hosts: [{ host: "localhost", port: server().port }] });

  test("prefer and require take it without proof, disable goes without", async () => {
    expect(await connect(server(), { mode: "disable" })).toBe(false);
    for (const mode of ["prefer", "require"] as const) expect([mode, await connect(server(), { mode })]).toEqual([mode, true]);
  });

  test("verify-full wants the host's name in a certificate of the authority", async () => {
    expect(await connect(server(), { mode: "verify-full", rootCertificatePath }, named())).toBe(true);
    expect(await connect(server(), { mode: "verify-full", rootCertificatePath })).toContain("connecting failed");
    expect(await connect(server(), { mode: "verify-full" }, named())).toContain("connecting failed");
  });

  test("verify-ca, and require with an authority, want a certificate of it for any name", async () => {
    for (const mode of ["verify-ca", "require"] as const)
      expect([mode, await connect(server(), { mode, rootCertificatePath })]).toEqual([mode, true]);
    expect(await connect(server(), { mode: "verify-ca" })).toContain("connecting failed");
  });

  test("an encrypted connection that is killed, or given up, is over", async () => {
    const place = testPlace(server(), { tls: { mode: "require", ...NO_FILES } });
    const closed = Promise.withResolvers<void>();
    const session = await PostgresSession.open({ place, clock: systemClock, onClosed: closed.resolve });
    const other = await PostgresSession.open({ place, clock: systemClock });
    const [row] = await session.query<{ pid: number }>(QUERY, "SELECT pg_backend_pid() AS pid");
    await other.query(QUERY, "SELECT pg_terminate_backend($1)", [row?.pid ?? 0]);
    await closed.promise;
    expect(session.isOver).toBe(true);
    const sleeping = other.query(QUERY, "SELECT pg_sleep(60)").catch((error: unknown) => error);
    other.end();
    expect(await sleeping).toMatchObject({ code: "database_failed" });
  });

  test("a file that cannot be read is named", async () => {
    expect(await connect(server(), { mode: "verify-full", rootCertificatePath: "/nonexistent/ca.pem" })).toContain("/nonexistent/ca.pem");
  });
});

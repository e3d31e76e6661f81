/** The database of a test. */
import { POSTGRES_DATABASE, POSTGRES_PASSWORD, POSTGRES_USER, type PostgresServer } from "../../scripts/postgres.ts";
import type { PostgresPlace } from "../../src/sql/postgres-place.ts";

/** As the command line would read it from the server's URL. */
export function testPlace(server: PostgresServer, changes: Partial<PostgresPlace> = {}): PostgresPlace {
  return {
    hosts: [{ host: "127.0.0.1", port: server.port }],
    database: POSTGRES_DATABASE,
    user: POSTGRES_USER,
    password: POSTGRES_PASSWORD,
    tls: { mode: "prefer", rootCertificatePath: null, certificatePath: null, keyPath: null },
    connectionsMax: 4,
    connectTimeoutMs: 20_000,
    applicationName: "pico",
    synchronousCommit: "on",
    ...changes,
  };
}

/** Sooner than a database for each test. */
export async function clearDatabase(server: PostgresServer): Promise<void> {
  const client = server.client();
  try {
    await client`DROP SCHEMA IF EXISTS pico CASCADE`;
  } finally {
    await client.end();
  }
}

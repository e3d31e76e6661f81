/** Where a Postgres database is and how it wants to be spoken to, as one plain value. */

/**
 * As in libpq. `prefer`: TLS where the server offers it, without proof of who it is; `require`: the same, never without;
 * `verify-ca`: only with a certificate of a known authority; `verify-full`: only with one for the host's name.
 */
export const POSTGRES_TLS_MODES = ["disable", "prefer", "require", "verify-ca", "verify-full"] as const;

/** What a commit waits for on the server; anything less would lose acknowledged changes in a power cut. */
export const POSTGRES_COMMIT_MODES = ["on", "remote_write", "remote_apply", "local"] as const;

export interface PostgresTls {
  readonly mode: (typeof POSTGRES_TLS_MODES)[number];
  /** PEM files, absolute; null: the system's authorities, no certificate of our own. */
  readonly rootCertificatePath: string | null;
  readonly certificatePath: string | null;
  readonly keyPath: string | null;
}

export interface PostgresPlace {
  /** Tried in this order until one is the primary; at least one. Names or addresses, IPv6 without brackets. */
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  readonly database: string;
  readonly user: string;
  /** Secret. Null: none is asked for. */
  readonly password: string | null;
  readonly tls: PostgresTls;
  /** Connections at once, besides the one that listens and the one for heartbeats. @default 4 */
  readonly connectionsMax: number;
  /** Until a connection can be used, over all hosts. @default 5000 */
  readonly connectTimeoutMs: number;
  /** Shown in the server's list of its clients. @default "pico" */
  readonly applicationName: string;
  /** @default "on" */
  readonly synchronousCommit: (typeof POSTGRES_COMMIT_MODES)[number];
}

/** For messages: `postgres://host:port/database`, without user and password. */
export function formatPostgresPlace({ hosts, database }: Pick<PostgresPlace, "hosts" | "database">): string {
  const authorities = hosts.map(({ host, port }) => `${host.includes(":") ? `[${host}]` : host}:${port}`);
  return `postgres://${authorities.join(",")}/${database}`;
}

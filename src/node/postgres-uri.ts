/**
 * URLs of Postgres, in the form of libpq: `postgres://user:password@host:port,host:port/database?name=value&...`.
 *
 * User, password, database and values are percent-encoded. A parameter that is not known is refused: a misspelled
 * `sslmode` would else be a connection without proof of the server. Messages have no part of a refused URL but its scheme:
 * where something is missing or not encoded, any other may be the password, or a piece of it.
 */
import { PicoError } from "../lib/errors.ts";
import {
  POSTGRES_CONNECT_TIMEOUT_MS_DEFAULT,
  POSTGRES_CONNECT_TIMEOUT_MS_MAX,
  POSTGRES_CONNECTIONS_DEFAULT,
  POSTGRES_CONNECTIONS_MAX,
} from "../lib/limits.ts";
import { POSTGRES_COMMIT_MODES, POSTGRES_TLS_MODES, type PostgresPlace, type PostgresTls } from "../sql/postgres-place.ts";
import { assertBucketId, CONNECTIONS_BESIDE, hideCredentials, readWalParameters } from "./bucket-uri.ts";
import type { WalSettings } from "./settings.ts";

const PORT_DEFAULT = 5432;
const HOSTS_MAX = 16;
const PARAMETERS = [
  "sslmode",
  "sslrootcert",
  "sslcert",
  "sslkey",
  "connect_timeout",
  "max",
  "application_name",
  "synchronousCommit",
  "target_session_attrs",
] as const;
type ParameterName = (typeof PARAMETERS)[number];
/** A snapshot that is read has one for minutes, and the rest goes on. */
const CONNECTIONS_MIN = 2;
/** Only the primary takes writes; to ask for less would be a mistake. */
const SESSION_ATTRIBUTES = ["primary", "read-write"] as const;
/** What the server cuts a longer one to. */
const NAME_CHARACTERS_MAX = 63;

export function isPostgresUrl(text: string): boolean {
  return /^postgres(ql)?:/.test(text);
}

/** A word that nobody asked for, for messages: it may be such a URL all the same. */
export function hidePostgresUrl(word: string): string {
  return word.replace(/(postgres(?:ql)?:).*$/is, "$1***");
}

/** Throws `settings`, naming `flag`. `resolvePath` makes the path of a certificate absolute. */
export function postgresPlaceFromUrl(text: string, flag: string, resolvePath: (path: string) => string): PostgresPlace {
  const refuse: Refuse = (why) =>
    new PicoError("settings", `unsupported ${flag} ${JSON.stringify(hideCredentials(text))}: ${why}`, { flag, isStartup: true });
  const form = /^postgres(?:ql)?:\/\/(?:([^@/?#]*)@)?([^@/?#]*)\/([^@/?#]*)(?:\?([^#]*))?$/.exec(text);
  if (form === null) {
    throw refuse("write postgres://USER:PASSWORD@HOST:PORT/DATABASE; what is no letter or digit in user or password is percent-encoded");
  }
  const [, credentials = "", hosts = "", database = "", query = ""] = form;
  const decode = (encoded: string) => decodePercent(encoded, refuse);
  const [user = "", password = null] =
    /^([^:]*)(?::(.*))?$/
      .exec(credentials)
      ?.slice(1)
      .map((part) => part ?? null) ?? [];
  if (user === null || user === "") throw refuse("it names no user");
  if (database === "") throw refuse("it names no database");
  const parameters = new Parameters(query, decode, refuse);
  parameters.word("target_session_attrs", SESSION_ATTRIBUTES);
  const connectSeconds = parameters.number("connect_timeout", 1, POSTGRES_CONNECT_TIMEOUT_MS_MAX / 1000);
  const name = parameters.text("application_name") ?? "pico";
  if (!/^[\x20-\x7e]+$/.test(name) || name.length > NAME_CHARACTERS_MAX) {
    throw refuse(`its application_name cannot be used; take 1 to ${NAME_CHARACTERS_MAX} characters of ASCII`);
  }
  return {
    hosts: readHosts(hosts, refuse),
    database: decode(database),
    user: decode(user),
    password: password === null ? null : decode(password),
    tls: readTls(parameters, resolvePath, refuse),
    connectionsMax: parameters.number("max", CONNECTIONS_MIN, POSTGRES_CONNECTIONS_MAX) ?? POSTGRES_CONNECTIONS_DEFAULT,
    connectTimeoutMs: connectSeconds === null ? POSTGRES_CONNECT_TIMEOUT_MS_DEFAULT : connectSeconds * 1000,
    applicationName: name,
    synchronousCommit: parameters.word("synchronousCommit", POSTGRES_COMMIT_MODES) ?? "on",
  };
}

/** Of a WAL; those of its ring in other programs, `segments` and `segmentBytes`, mean nothing here. */
const WAL_PARAMETERS: readonly string[] = [
  "linger",
  "batchInterval",
  "maxBytesInBatch",
  "maxInflight",
  "maxUnflushedBytes",
  "segments",
  "segmentBytes",
  "allowUnsafe",
];

/** A WAL in Postgres: `[id@]postgres://…`, with parameters of its own beside those of the connection. Null: it is none. Throws `settings`. */
export function postgresWalFromUri(
  text: string,
  idDefault: number,
  flag: string,
  resolvePath: (path: string) => string,
): Extract<WalSettings, { kind: "postgres" }> | null {
  const [, idText = String(idDefault), url = ""] = /^(?:([+-]?\d{1,6})@)?(postgres(?:ql)?:.*)$/s.exec(text) ?? [];
  if (url === "") return null;
  const [base = "", query = ""] = url.split(/\?(.*)/s, 2);
  const isOwn = (pair: string) => WAL_PARAMETERS.includes(pair.split("=", 1)[0] ?? "");
  const pairs = query.split("&");
  const others = pairs.filter((pair) => !isOwn(pair)).join("&");
  const place = postgresPlaceFromUrl(others === "" ? base : `${base}?${others}`, flag, resolvePath);
  const own = new Map(pairs.filter(isOwn).map((pair) => pair.split(/=(.*)/s, 2) as [string, string]));
  const parameters = readWalParameters({ parameters: own }, "postgres", flag);
  return {
    kind: "postgres",
    id: assertBucketId(Number(idText), flag),
    place: { ...place, connectionsMax: Math.max(place.connectionsMax, parameters.inFlightMax + CONNECTIONS_BESIDE) },
    isUnsafeAllowed: own.get("allowUnsafe") === "true",
    parameters,
  };
}

type Refuse = (why: string) => PicoError;

function readHosts(text: string, refuse: Refuse): PostgresPlace["hosts"] {
  const hosts = text.split(",").map((authority, at) => {
    const [, address, name, portText] = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?$/.exec(authority) ?? [];
    const host = address ?? name;
    if (host === undefined)
      throw refuse(authority === "" ? "it names no host" : `its host ${at + 1} is none; write HOST:PORT or [IPV6]:PORT`);
    const port = portText === undefined ? PORT_DEFAULT : Number(portText);
    if (port < 1 || port > 65_535) throw refuse(`the port of its host ${at + 1} is none; give one from 1 to 65535`);
    return { host, port };
  });
  if (hosts.length > HOSTS_MAX) throw refuse(`it names ${hosts.length} hosts; at most ${HOSTS_MAX} are tried`);
  return hosts;
}

function readTls(parameters: Parameters, resolvePath: (path: string) => string, refuse: Refuse): PostgresTls {
  const mode = parameters.word("sslmode", POSTGRES_TLS_MODES) ?? "prefer";
  const file = (name: ParameterName) => {
    const path = parameters.text(name);
    return path === null ? null : resolvePath(path);
  };
  const isSystem = parameters.text("sslrootcert") === "system";
  const tls = {
    mode,
    rootCertificatePath: isSystem ? null : file("sslrootcert"),
    certificatePath: file("sslcert"),
    keyPath: file("sslkey"),
  };
  if ((tls.certificatePath === null) !== (tls.keyPath === null)) throw refuse("sslcert and sslkey need each other");
  const hasFiles = isSystem || tls.rootCertificatePath !== null || tls.certificatePath !== null;
  if (hasFiles && (mode === "disable" || mode === "prefer"))
    throw refuse("its certificates need sslmode=require, verify-ca or verify-full");
  if (isSystem && mode !== "verify-full") throw refuse("sslrootcert=system needs sslmode=verify-full");
  return tls;
}

class Parameters {
  readonly #values = new Map<string, string>();
  readonly #refuse: Refuse;

  constructor(query: string, decode: (encoded: string) => string, refuse: Refuse) {
    this.#refuse = refuse;
    for (const [at, pair] of query.split("&").entries()) {
      if (pair === "") continue;
      const [name = "", value = ""] = pair.split(/=(.*)/s, 2).map(decode);
      if (!(PARAMETERS as readonly string[]).includes(name)) {
        throw refuse(`its parameter ${at + 1} is unknown; known are ${PARAMETERS.join(", ")}`);
      }
      if (this.#values.has(name)) throw refuse(`it has the parameter ${name} twice`);
      if (value === "") throw refuse(`its parameter ${name} is empty; give a value or leave it out`);
      this.#values.set(name, value);
    }
  }

  text(name: ParameterName): string | null {
    return this.#values.get(name) ?? null;
  }

  word<Word extends string>(name: ParameterName, words: readonly Word[]): Word | null {
    const text = this.text(name);
    const found = words.find((word) => word === text);
    if (text !== null && found === undefined) throw this.#refuse(`its parameter ${name} takes ${words.join(", ")}`);
    return found ?? null;
  }

  number(name: ParameterName, min: number, max: number): number | null {
    const text = this.text(name);
    if (text === null) return null;
    const value = Number(text);
    if (!/^\d{1,9}$/.test(text) || value < min || value > max) {
      throw this.#refuse(`its parameter ${name} takes a whole number from ${min} to ${max}`);
    }
    return value;
  }
}

function decodePercent(encoded: string, refuse: Refuse): string {
  let text: string;
  try {
    text = decodeURIComponent(encoded);
  } catch {
    throw refuse("it has a % that begins no percent-encoding; write %25");
  }
  if (text.includes("\0")) throw refuse("it has a zero byte");
  return text;
}

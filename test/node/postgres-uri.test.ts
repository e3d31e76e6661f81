import { expect, test } from "bun:test";
import { PicoError } from "../../src/lib/errors.ts";
import { postgresPlaceFromUrl } from "../../src/node/postgres-uri.ts";
import { formatPostgresPlace } from "../../src/sql/postgres-place.ts";

const read = (text: string) => postgresPlaceFromUrl(text, "--meta-url", (path) => `/home/me/${path}`);

function refusalOf(text: string): string {
  try {
    read(text);
  } catch (error) {
    if (error instanceof PicoError && error.code === "settings") return error.message;
    throw error;
  }
  return "read";
}

test("what a URL leaves out has its default", () => {
  expect(read("postgres://u@h/d")).toEqual({
    hosts: [{ host: "h", port: 5432 }],
    database: "d",
    user: "u",
    password: null,
    tls: { mode: "prefer", rootCertificatePath: null, certificatePath: null, keyPath: null },
    connectionsMax: 4,
    connectTimeoutMs: 5000,
    applicationName: "pico",
    synchronousCommit: "on",
  });
});

test("hosts, credentials and parameters are read, percent-encoded ones decoded", () => {
  const place = read(
    "postgresql://u%40x:p%2Fw%3A%40:@db.example.com:6432,[::1],10.0.0.1:1/a%20b?sslmode=verify-full&sslrootcert=ca.pem&sslcert=c.pem&sslkey=k.pem" +
      "&connect_timeout=9&max=20&application_name=node%201&synchronousCommit=remote_apply&target_session_attrs=read-write",
  );
  expect(place).toEqual({
    hosts: [
      { host: "db.example.com", port: 6432 },
      { host: "::1", port: 5432 },
      { host: "10.0.0.1", port: 1 },
    ],
    database: "a b",
    user: "u@x",
    password: "p/w:@:",
    tls: {
      mode: "verify-full",
      rootCertificatePath: "/home/me/ca.pem",
      certificatePath: "/home/me/c.pem",
      keyPath: "/home/me/k.pem",
    },
    connectionsMax: 20,
    connectTimeoutMs: 9000,
    applicationName: "node 1",
    synchronousCommit: "remote_apply",
  });
  expect(formatPostgresPlace(place)).toBe("postgres://db.example.com:6432,[::1]:5432,10.0.0.1:1/a b");
});

test("the system's authorities are taken by name", () => {
  expect(read("postgres://u@h/d?sslmode=verify-full&sslrootcert=system").tls).toMatchObject({
    mode: "verify-full",
    rootCertificatePath: null,
  });
});

test("what cannot be meant is refused, and no refusal has a secret", () => {
  const wrong: readonly (readonly [string, RegExp])[] = [
    ["postgres://h/d", /names no user/],
    ["postgres://:secret@h/d", /names no user/],
    ["postgres://u:secret@/d", /names no host/],
    ["postgres://u:secret@h", /write postgres:/],
    ["postgres://u:secret@h/", /names no database/],
    ["postgres:u:secret@h/d", /write postgres:/],
    ["postgres://u:sec@ret@h/d", /percent-encoded/],
    ["postgres://u:secret%zz@h/d", /percent-encoding/],
    ["postgres://u:secret%00@h/d", /zero byte/],
    ["postgres://u:secret/d", /names no user/],
    ["postgres://u@v:secret/d", /host 1 is none/],
    ["postgres://u:secret@h:0/d", /port of its host 1/],
    ["postgres://u:secret@h,h:65536/d", /port of its host 2/],
    ["postgres://u:secret@h,,h/d", /names no host/],
    ["postgres://u:secret@h_/d?sslmod=verify-full", /parameter 1 is unknown; known are sslmode/],
    ["postgres://u:secret@h/d?max=5&secret=1", /parameter 2 is unknown/],
    ["postgres://u:secret@h/d?sslmode=secret", /sslmode takes/],
    ["postgres://u:secret@h/d?max=1", /from 2 to 100/],
    ["postgres://u:secret@h/d?max=4&max=5", /twice/],
    ["postgres://u:secret@h/d?max=", /is empty/],
    ["postgres://u:secret@h/d?connect_timeout=0", /from 1 to 60/],
    ["postgres://u:secret@h/d?sslrootcert=ca.pem", /need sslmode/],
    ["postgres://u:secret@h/d?sslmode=require&sslcert=c.pem", /need each other/],
    ["postgres://u:secret@h/d?sslmode=require&sslrootcert=system", /needs sslmode=verify-full/],
    ["postgres://u:secret@h/d?synchronousCommit=off", /synchronousCommit takes/],
    ["postgres://u:secret@h/d?target_session_attrs=standby", /takes primary/],
  ];
  for (const [text, expected] of wrong) {
    const message = refusalOf(text);
    expect([text, message]).toEqual([text, expect.stringMatching(/^unsupported --meta-url /)]);
    expect([text, message]).toEqual([text, expect.stringMatching(expected)]);
    expect(message).not.toContain("secret");
  }
});

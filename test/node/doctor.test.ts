import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FlagValues } from "../../src/cli/flag-values.ts";
import { readServeSettings } from "../../src/cli/serve-settings.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { examine, type Finding } from "../../src/node/doctor.ts";
import { describeOpenFiles, examineClock } from "../../src/node/doctor-system.ts";
import { SqliteStore } from "../../src/sql/sqlite-store.ts";

const ANY_PORTS = { "--listen": "127.0.0.1:0", "--ds-listen": "127.0.0.1:0", "--admin-listen": "127.0.0.1:0" };

function temporaryFolder(): { readonly path: string; [Symbol.dispose](): void } {
  const path = mkdtempSync(join(tmpdir(), "pico-doctor-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

async function findingsOf(given: Record<string, string>, clock = systemClock): Promise<Map<string, Finding>> {
  const flags = new Map(Object.entries({ ...ANY_PORTS, ...given }).map(([flag, text]) => [flag, [text]]));
  const findings = new Map<string, Finding>();
  for await (const finding of examine(readServeSettings(new FlagValues(flags, {}), "/nowhere"), clock)) {
    expect(findings.has(finding.what)).toBe(false);
    findings.set(finding.what, finding);
  }
  return findings;
}

/** A database as a node leaves it. */
async function makeDatabase(path: string): Promise<void> {
  const store = new SqliteStore({ path, clock: systemClock, onWarning: () => {} });
  await store.open("test");
  await store.close();
}

test("a folder that is not there yet is well, and nothing is made", async () => {
  using folder = temporaryFolder();
  const findings = await findingsOf({ "--data-dir": join(folder.path, "new") });
  expect([...findings.values()].filter(({ level }) => level === "fail")).toEqual([]);
  for (const what of ["metadata folder", "objects folder", "WAL folder", "database"]) {
    expect(findings.get(what)).toMatchObject({ level: "ok", detail: expect.stringContaining("not there yet") });
  }
  expect(readdirSync(folder.path)).toEqual([]);
});

test("a place that is no folder, or below none, fails with the flags that name another", async () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "file");
  writeFileSync(path, "");
  for (const place of [path, join(path, "below")]) {
    const findings = await findingsOf({ "--data-dir": place });
    expect(findings.get("WAL folder")).toMatchObject({ level: "fail", detail: expect.stringContaining("--data-dir or --wal") });
    expect(findings.has("WAL space")).toBe(false);
  }
});

test("what is in memory is told", async () => {
  const findings = await findingsOf({ "--meta-url": "sqlite::memory:", "--storage": "1@mem://d", "--wal": "2@mem://w" });
  for (const what of ["metadata folder", "objects folder", "WAL folder", "database"]) {
    expect(findings.get(what)).toMatchObject({ level: "warn", detail: expect.stringContaining("in memory") });
  }
});

test("a database is looked at without making or changing a file", async () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "meta.db");
  await makeDatabase(path);
  const names = readdirSync(folder.path);
  const bytes = readFileSync(path);
  const { level, detail } = (await findingsOf({ "--data-dir": folder.path })).get("database") ?? {};
  expect([level, detail]).toEqual(["ok", expect.stringContaining("schema version 1")]);
  expect(readdirSync(folder.path)).toEqual(names);
  expect(readFileSync(path).equals(bytes)).toBe(true);
});

test("a database that is damaged, of a later program, of another one, or none at all fails with what to do", async () => {
  const damages: [string, (path: string) => void, RegExp][] = [
    ["no database", (path) => writeFileSync(path, "x".repeat(5000)), /not a database.*restore a backup/],
    [
      "of another program",
      (path) => {
        rmSync(path);
        using other = new Database(path, { create: true });
        other.run("CREATE TABLE t (a)");
      },
      /none of pico; name the node's own/,
    ],
    [
      "of a later program",
      (path) => {
        using later = new Database(path);
        later.run("UPDATE pico_schema SET version = 99");
        later.run("PRAGMA wal_checkpoint(TRUNCATE)");
      },
      /schema version 99.*use a later program/,
    ],
    [
      "damaged pages",
      (path) => {
        const bytes = readFileSync(path);
        bytes.fill(0xff, 4096, 4096 * 3);
        writeFileSync(path, bytes);
      },
      /damaged|malformed/,
    ],
    ["a folder", (path) => [rmSync(path), mkdirSync(path)], /is no file/],
    ["a log without its index", (path) => writeFileSync(`${path}-wal`, "x"), /-wal file/],
  ];
  for (const [what, damage, detail] of damages) {
    using folder = temporaryFolder();
    const path = join(folder.path, "meta.db");
    await makeDatabase(path);
    damage(path);
    const finding = (await findingsOf({ "--data-dir": folder.path })).get("database");
    expect([what, finding]).toEqual([
      what,
      { level: what.startsWith("a log") ? "warn" : "fail", what: "database", detail: expect.stringMatching(detail) },
    ]);
  }
});

test("a port that another program has fails with the flag that names another", async () => {
  const other = createServer((socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"));
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const address = other.address();
  const port = typeof address === "object" ? address?.port : 0;
  for (const [what, flag] of [
    ["pico listener", "--listen"],
    ["ds listener", "--ds-listen"],
    ["admin listener", "--admin-listen"],
  ] as const) {
    const finding = (await findingsOf({ "--meta-url": "sqlite::memory:", "--storage": "1@mem://d", [flag]: `127.0.0.1:${port}` })).get(
      what,
    );
    expect([finding?.level, finding?.detail]).toEqual([
      "fail",
      `127.0.0.1:${port} is taken by another program; stop it (ss -ltnp shows which), or give another port with ${flag}`,
    ]);
  }
  other.close();
  expect((await findingsOf({ "--listen": "192.0.2.1:4437", "--insecure-allow-remote": "" })).get("pico listener")).toMatchObject({
    level: "fail",
    detail: expect.stringContaining("EADDRNOTAVAIL"),
  });
});

test("a clock before the last write of the database is told", async () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "meta.db");
  await makeDatabase(path);
  {
    using database = new Database(path);
    database.run("INSERT INTO log VALUES (1, ?, 'r', 1, 1, 1, x'00')", [Date.now() + 3_600_000]);
    database.run("PRAGMA wal_checkpoint(TRUNCATE)");
  }
  const finding = (await findingsOf({ "--data-dir": folder.path })).get("clock");
  expect(finding).toMatchObject({
    level: "warn",
    detail: expect.stringMatching(/3[56]\d\d\.\d s before the last write .+; set the clock/),
  });
});

test("clocks that step, fall, or were never set are told apart", () => {
  const nowMs = Date.UTC(2026, 5, 1);
  const clocks = (wallMs: number, monotonicMs: number) => ({ wallMs, monotonicMs });
  const level = (after: [number, number], lastWriteMs: number | null = null) =>
    examineClock(clocks(nowMs, 100), clocks(...after), lastWriteMs).level;
  expect(level([nowMs + 50, 150])).toBe("ok");
  expect(level([nowMs + 50, 150], nowMs)).toBe("ok");
  expect(level([nowMs + 50, 150], nowMs + 1050)).toBe("ok");
  expect(level([nowMs + 50, 150], nowMs + 1051)).toBe("warn");
  expect(level([nowMs + 5000, 150])).toBe("warn");
  expect(level([nowMs - 5000, 150])).toBe("warn");
  expect(level([nowMs, 99])).toBe("fail");
  expect(examineClock(clocks(0, 0), clocks(50, 50), null).level).toBe("fail");
});

test("the limit of open files is judged by the connections that it leaves", () => {
  const limits = (text: string) =>
    `Limit                     Soft Limit           Hard Limit           Units\nMax open files            ${text}                 ${text}              files\n`;
  for (const [text, level] of [
    ["0", "fail"],
    ["256", "fail"],
    ["257", "warn"],
    ["1024", "warn"],
    ["4352", "ok"],
    ["unlimited", "ok"],
  ] as const) {
    expect([text, describeOpenFiles(limits(text)).level]).toEqual([text, level]);
  }
  expect(describeOpenFiles(limits("1024")).detail).toContain("768 connections");
  expect(describeOpenFiles(null).level).toBe("ok");
});

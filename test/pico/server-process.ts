/**
 * The real server as a child process: `pico serve` on free loopback ports with a data directory of its
 * own, removed at the end.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const root = dirname(dirname(import.meta.dir));

export interface ServerProcess {
  readonly picoUrl: string;
  readonly durableStreamsUrl: string;
  /** Stops it gracefully; returns its exit code. */
  stop(): Promise<number>;
}

/** Starts a server and waits until it says where it listens. Throws with what it wrote if it ends before. */
export async function startServer(flags: readonly string[], environment: Readonly<Record<string, string>> = {}): Promise<ServerProcess> {
  const folder = mkdtempSync(join(tmpdir(), "pico-server-"));
  const child = Bun.spawn(
    [
      process.execPath,
      join(root, "src/cli/main.ts"),
      "serve",
      ...["--data-dir", folder],
      ...["--listen", "127.0.0.1:0"],
      ...["--ds-listen", "127.0.0.1:0"],
      "--no-admin",
      ...flags,
    ],
    { cwd: root, env: { ...cleanEnvironment(), ...environment }, stdio: ["ignore", "pipe", "inherit"] },
  );
  async function stop(): Promise<number> {
    child.kill("SIGTERM");
    const exitCode = await child.exited;
    rmSync(folder, { recursive: true, force: true });
    return exitCode;
  }
  const addresses = await readAddresses(child.stdout);
  if (addresses !== null) return { ...addresses, stop };
  await stop();
  throw new Error("the server ended before it listened");
}

/** What the server says of itself; null if it ends first. Its output is read on afterwards, so that it never waits for us. */
async function readAddresses(output: ReadableStream<Uint8Array>): Promise<Pick<ServerProcess, "picoUrl" | "durableStreamsUrl"> | null> {
  const reader = output.getReader();
  let said = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return null;
    said += Buffer.from(value).toString("utf8");
    const picoUrl = /^serving on (http:\/\/\S+)/m.exec(said)?.[1];
    const durableStreamsUrl = /^durable streams on (http:\/\/\S+)/m.exec(said)?.[1];
    if (picoUrl === undefined || durableStreamsUrl === undefined) continue;
    void drain(reader);
    return { picoUrl, durableStreamsUrl };
  }
}

async function drain(reader: { read(): Promise<{ done: boolean }> }): Promise<void> {
  while (!(await reader.read()).done);
}

/** Variables of the person who runs the tests must not reach the server. */
function cleanEnvironment(): Record<string, string> {
  const entries = Object.entries(process.env).filter(([name, value]) => value !== undefined && !name.startsWith("PICO_"));
  return Object.fromEntries(entries) as Record<string, string>;
}

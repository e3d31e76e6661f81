/** What is measured: our server and its peers, how each is started with durable storage, and what is printed of it. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../../scripts/free-port.ts";
import type { ServerCommand } from "./server-process.ts";

const ROOT = join(import.meta.dir, "../..");
/** Where `bench/peers/fetch.ts` puts the peers. */
export const PEERS_FOLDER = join(ROOT, ".cache/peers");
export const RUST_VERSION = "0.1.5";
export const NODE_VERSION = "0.3.7";
export const RUST_BINARY = join(PEERS_FOLDER, "rust/bin/durable-streams-server");
export const NODE_PACKAGE = join(PEERS_FOLDER, "node/node_modules/@durable-streams/server");

export type SubjectId = "pico" | "baseline" | "rust" | "node";

/** Base URLs of a started server, without a trailing slash; null where it does not speak the protocol. */
export interface Endpoints {
  readonly durableStreams: string;
  readonly pico: string | null;
}

export interface Subject {
  readonly id: SubjectId;
  /** For the report: program, version, settings. */
  readonly description: string;
  /** A command that serves `folder` on free ports, and where it will answer. */
  prepare(folder: string): Promise<ServerCommand & { readonly endpoints: Endpoints }>;
}

export interface OurServerOptions {
  readonly id: "pico" | "baseline";
  /** Root of a checkout. */
  readonly checkout: string;
  /** Do not look for a compiled program. */
  readonly fromSource: boolean;
  readonly flags: readonly string[];
}

/** Our server: the compiled program where it is that of the sources, else the sources. */
export function ourServer({ id, checkout, fromSource, flags }: OurServerOptions): Subject {
  const binary = join(checkout, "dist/pico");
  const useBinary = !fromSource && isCurrent(binary, checkout);
  const program = useBinary ? [binary] : [process.execPath, join(checkout, "src/cli/main.ts")];
  const commit = runText(["git", "-C", checkout, "rev-parse", "--short=12", "HEAD"]);
  const settings = flags.length === 0 ? "default settings" : flags.join(" ");
  return {
    id,
    description: `PicoMQ ${commit}, ${useBinary ? "compiled" : `sources on Bun ${Bun.version}`}, ${flags.some((flag) => flag.includes("s3:")) ? "" : "local-disk WAL (fdatasync before each answer), "}${settings}`,
    async prepare(folder) {
      const [pico, durableStreams, admin] = [await freePort(), await freePort(), await freePort()];
      const listeners = [
        "--listen",
        `127.0.0.1:${pico}`,
        "--ds-listen",
        `127.0.0.1:${durableStreams}`,
        "--admin-listen",
        `127.0.0.1:${admin}`,
      ];
      return {
        command: [...program, "serve", "--data-dir", folder, ...listeners, "--log-level", "warn", ...flags],
        probe: { url: `http://127.0.0.1:${admin}/ready`, expects: "ready" },
        endpoints: { durableStreams: `http://127.0.0.1:${durableStreams}`, pico: `http://127.0.0.1:${pico}` },
      };
    },
  };
}

/** The peers that are there; null for one that `bench/peers/fetch.ts` has not brought. */
export function rustPeer(): Subject | null {
  if (!existsSync(RUST_BINARY)) return null;
  return {
    id: "rust",
    description: `crate durable-streams ${RUST_VERSION}, --durability wal (its default: fdatasync of a sharded WAL before each answer)`,
    async prepare(folder) {
      const port = await freePort();
      const url = `http://127.0.0.1:${port}`;
      const command = [RUST_BINARY, "--host", "127.0.0.1", "--port", String(port), "--data-dir", folder, "--durability", "wal"];
      return { command, probe: { url: `${url}/ready`, expects: "any" }, endpoints: { durableStreams: url, pico: null } };
    },
  };
}

export function nodePeer(): Subject | null {
  if (!existsSync(NODE_PACKAGE)) return null;
  return {
    id: "node",
    description: `npm @durable-streams/server ${NODE_VERSION} on Node ${runText(["node", "--version"])}, dataDir set (fdatasync of the stream's file before each answer)`,
    async prepare(folder) {
      const port = await freePort();
      const url = `http://127.0.0.1:${port}`;
      const command = ["node", join(ROOT, "bench/peers/node-server.mjs"), NODE_PACKAGE, folder, String(port)];
      return { command, probe: { url: `${url}/ready`, expects: "any" }, endpoints: { durableStreams: url, pico: null } };
    },
  };
}

/** Whether the compiled program was built from the sources as they are now. */
function isCurrent(binary: string, checkout: string): boolean {
  if (!existsSync(binary)) return false;
  const built = /\(([0-9a-f]{12})\)/.exec(runText([binary, "--version"]))?.[1];
  if (built === undefined) return false;
  const difference = Bun.spawnSync(["git", "-C", checkout, "diff", "--quiet", built, "--", "src", "public", "package.json"]);
  return difference.exitCode === 0;
}

function runText(command: string[]): string {
  return Bun.spawnSync(command, { stderr: "ignore" }).stdout.toString().trim();
}

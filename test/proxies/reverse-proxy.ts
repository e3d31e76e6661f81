/**
 * Real reverse proxies before a node, with the settings that their packages come with or their manuals begin with.
 * Whoever starts one ends it.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../scripts/free-port.ts";

export const PROXY_KINDS = ["nginx", "haproxy", "caddy"] as const;
export type ProxyKind = (typeof PROXY_KINDS)[number];

/** Where Debian's packages put them. */
const PROGRAMS: Readonly<Record<ProxyKind, string>> = {
  nginx: "/usr/sbin/nginx",
  haproxy: "/usr/sbin/haproxy",
  caddy: "/usr/bin/caddy",
};
/** Long enough for a crowded machine. */
const START_MS_MAX = 30_000;

export interface ProxyOptions {
  readonly targetPort: number;
  /** The proxy cuts an answer that is silent for longer. Caddy has no such limit. */
  readonly silenceSecondsMax: number;
  /** nginx only: answers are kept in a cache as their headers allow. */
  readonly hasCache?: boolean;
}

interface ProxySetup extends ProxyOptions {
  readonly port: number;
  readonly folder: string;
}

export function isInstalled(kind: ProxyKind): boolean {
  return existsSync(PROGRAMS[kind]);
}

export class ReverseProxy {
  readonly url: string;
  readonly #folder: string;
  readonly #child: Bun.Subprocess;

  private constructor(url: string, folder: string, child: Bun.Subprocess) {
    this.url = url;
    this.#folder = folder;
    this.#child = child;
  }

  static async start(kind: ProxyKind, options: ProxyOptions): Promise<ReverseProxy> {
    const folder = mkdtempSync(join(tmpdir(), `pico-${kind}-`));
    const port = await freePort();
    const words = prepare(kind, { ...options, port, folder });
    // Caddy keeps what it knows below the home directory.
    const env = { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
    const child = Bun.spawn([PROGRAMS[kind], ...words], { env, cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
    const errors = child.stderr.text();
    const proxy = new ReverseProxy(`http://127.0.0.1:${port}`, folder, child);
    if (await proxy.#listens(port)) return proxy;
    await proxy.close();
    throw new Error(`${kind} does not listen on ${port}: ${await errors}`);
  }

  async close(): Promise<void> {
    this.#child.kill("SIGTERM");
    await this.#child.exited;
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #listens(port: number): Promise<boolean> {
    const startedAtMs = performance.now();
    while (this.#child.exitCode === null && performance.now() - startedAtMs < START_MS_MAX) {
      if (await accepts(port)) return true;
      await Bun.sleep(20);
    }
    return false;
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

/** Writes the configuration; the words that start the program with it, in the foreground. */
function prepare(kind: ProxyKind, setup: ProxySetup): string[] {
  const path = join(setup.folder, kind === "caddy" ? "Caddyfile" : `${kind}.conf`);
  const texts = { nginx: nginxText, haproxy: haproxyText, caddy: caddyText };
  writeFileSync(path, texts[kind](setup));
  if (kind === "nginx") mkdirSync(join(setup.folder, "temp"));
  const words = {
    nginx: ["-e", "stderr", "-p", setup.folder, "-c", path],
    haproxy: ["-db", "-f", path],
    caddy: ["run", "--config", path, "--adapter", "caddyfile"],
  };
  return words[kind];
}

/** Compression is on, as in Debian's `nginx.conf`, for all types: an event stream must not be swallowed by it. */
function nginxText({ port, targetPort, silenceSecondsMax, folder, hasCache }: ProxySetup): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${folder}/temp/${name};`);
  const cache = hasCache ? "proxy_cache streams; proxy_cache_revalidate on;" : "";
  return `
    daemon off;
    ${process.getuid?.() === 0 ? "user root;" : ""}
    pid ${folder}/nginx.pid;
    events {}
    http {
      access_log off;
      ${temporary.join("\n")}
      ${hasCache ? `proxy_cache_path ${folder}/cache keys_zone=streams:1m;` : ""}
      gzip on;
      gzip_types *;
      gzip_proxied any;
      gzip_min_length 1;
      server {
        listen 127.0.0.1:${port};
        location / {
          proxy_pass http://127.0.0.1:${targetPort};
          proxy_read_timeout ${silenceSecondsMax}s;
          ${cache}
        }
      }
    }`;
}

function haproxyText({ port, targetPort, silenceSecondsMax }: ProxySetup): string {
  return `
defaults
  mode http
  timeout connect 5s
  timeout client ${silenceSecondsMax}s
  timeout server ${silenceSecondsMax}s
frontend front
  bind 127.0.0.1:${port}
  compression algo gzip
  default_backend back
backend back
  server node 127.0.0.1:${targetPort}
`;
}

function caddyText({ port, targetPort }: ProxySetup): string {
  return `
{
  admin off
  auto_https off
}
http://127.0.0.1:${port} {
  encode gzip
  reverse_proxy 127.0.0.1:${targetPort}
}
`;
}

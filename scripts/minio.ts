/**
 * Real MinIO for tests, benchmarks and trying out, from the Go module proxy: there is no Docker in it.
 *
 *   bun scripts/minio.ts build                 builds .cache/minio/minio unless it is there, and prints its path
 *   bun scripts/minio.ts serve [DIRECTORY]     runs one with the bucket `picomq`, until Ctrl-C; without DIRECTORY its data go
 *
 * `PICO_TEST_MINIO` names another executable. A server listens on a free port of the loopback interface, and is ended by
 * whoever started it.
 */
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import { freePort } from "./free-port.ts";

const root = dirname(import.meta.dir);
const MODULE = "github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c";
const FOLDER = join(root, ".cache/minio");
const GO_PLACES = ["go", "/usr/local/go/bin/go"];
const START_MS_MAX = 60_000;

export const MINIO_PATH = process.env.PICO_TEST_MINIO ?? join(FOLDER, "minio");
export const MINIO_MISSING = `no MinIO at ${MINIO_PATH}: node scripts/bootstrap.mjs scripts/minio.ts build makes it (needs Go), or PICO_TEST_MINIO=PATH`;
/** Of the servers that are started here, which nobody else reaches. */
export const MINIO_CREDENTIALS = { accessKeyId: "pico-test-key", secretAccessKey: "pico-test-secret" };
export const MINIO_BUCKET = "picomq";

export interface MinioServer {
  /** `http://127.0.0.1:PORT`. */
  readonly endpoint: string;
  readonly processId: number;
  readonly logPath: string;
  /** The folders of its drives; of one drive that of the data. */
  readonly drivePaths: readonly string[];
  /** For programs that are to use it: credentials, and nothing of the person who runs the tests. */
  readonly environment: Readonly<Record<string, string>>;
  /** `s3://BUCKET` with what the server needs; `path` goes behind the bucket: `/prefix`. */
  uri(path?: string, parameters?: string): string;
  makeBucket(name: string): Promise<void>;
  /** A client for what a test arranges behind the back of the product. */
  client(): S3Client;
  stop(): Promise<void>;
}

export function isMinioThere(): boolean {
  return existsSync(MINIO_PATH);
}

/** Builds the executable unless it is there; returns its path. A few minutes, once. Throws where there is no Go. */
export async function buildMinio(): Promise<string> {
  if (isMinioThere()) return MINIO_PATH;
  const go = GO_PLACES.find((path) => Bun.which(path) !== null);
  if (go === undefined)
    throw new Error("no Go to build MinIO with: install it (https://go.dev/dl/), or name an executable with PICO_TEST_MINIO");
  mkdirSync(FOLDER, { recursive: true });
  console.error(`building ${MODULE}, a few minutes`);
  const child = Bun.spawn([go, "install", MODULE], { env: { ...process.env, GOBIN: FOLDER }, stdio: ["ignore", "ignore", "inherit"] });
  if ((await child.exited) !== 0) throw new Error(`go install ${MODULE} failed; see its output above`);
  return MINIO_PATH;
}

/**
 * Starts a server with one bucket. `directory`: null for a fresh one that goes with it. `drives`: folders in it that the
 * server takes for so many drives, of which an object needs half to be read, and of four or more one more to be written.
 */
export async function startMinio(directory: string | null = null, drives = 1): Promise<MinioServer> {
  if (!isMinioThere()) throw new Error(MINIO_MISSING);
  const folder = mkdtempSync(join(tmpdir(), "pico-minio-"));
  const logPath = join(folder, "log");
  const log = openSync(logPath, "a");
  const data = directory ?? join(folder, "data");
  const drivePaths = drives === 1 ? [data] : Array.from({ length: drives }, (_, at) => join(data, `drive-${at + 1}`));
  const port = await freePort();
  const address = `127.0.0.1:${port}`;
  const child = Bun.spawn([MINIO_PATH, "server", "--quiet", "--address", address, "--console-address", "127.0.0.1:0", ...drivePaths], {
    cwd: folder,
    env: {
      PATH: process.env.PATH ?? "",
      HOME: folder,
      MINIO_ROOT_USER: MINIO_CREDENTIALS.accessKeyId,
      MINIO_ROOT_PASSWORD: MINIO_CREDENTIALS.secretAccessKey,
      MINIO_BROWSER: "off",
      MINIO_UPDATE: "off",
      MINIO_CALLHOME_ENABLE: "off",
      // Else it refuses drives that are folders of the system's own disk.
      ...(drives === 1 ? {} : { MINIO_CI_CD: "on" }),
    },
    stdio: ["ignore", log, log],
  });
  const endpoint = `http://${address}`;
  const server: MinioServer = {
    endpoint,
    processId: child.pid,
    logPath,
    drivePaths,
    environment: {
      AWS_ACCESS_KEY_ID: MINIO_CREDENTIALS.accessKeyId,
      AWS_SECRET_ACCESS_KEY: MINIO_CREDENTIALS.secretAccessKey,
      AWS_REGION: "us-east-1",
      AWS_EC2_METADATA_DISABLED: "true",
      // Without these the files of whoever runs the tests would count.
      AWS_CONFIG_FILE: join(folder, "no-config"),
      AWS_SHARED_CREDENTIALS_FILE: join(folder, "no-credentials"),
    },
    uri: (path = "", parameters = "") => `s3://${MINIO_BUCKET}${path}?endpoint=${endpoint}&pathStyle=true${parameters}`,
    async makeBucket(name) {
      const client = this.client();
      await client.send(new CreateBucketCommand({ Bucket: name }));
      client.destroy();
    },
    client: () => new S3Client({ endpoint, region: "us-east-1", forcePathStyle: true, credentials: MINIO_CREDENTIALS }),
    async stop() {
      child.kill("SIGTERM");
      await child.exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
  try {
    await waitUntilReady(endpoint, child, logPath);
    if (directory === null || !existsSync(join(directory, MINIO_BUCKET))) await server.makeBucket(MINIO_BUCKET);
    return server;
  } catch (error) {
    await server.stop();
    throw error;
  }
}

async function waitUntilReady(endpoint: string, child: Bun.Subprocess, logPath: string): Promise<void> {
  const limitMs = performance.now() + START_MS_MAX;
  while (performance.now() < limitMs && child.exitCode === null) {
    const answer = await fetch(`${endpoint}/minio/health/ready`).catch(() => null);
    await answer?.body?.cancel();
    if (answer?.ok) return;
    await Bun.sleep(20);
  }
  throw new Error(`MinIO did not start: ${readFileSync(logPath, "utf8").slice(-2000)}`);
}

async function main([verb, directory]: readonly string[]): Promise<number> {
  if (verb === "build") {
    console.log(await buildMinio());
    return 0;
  }
  if (verb !== "serve") {
    console.error("scripts/minio.ts build | serve [DIRECTORY]");
    return 2;
  }
  await buildMinio();
  const server = await startMinio(directory ?? null);
  console.log(`MinIO at ${server.endpoint}. A node on it:\n`);
  for (const [name, value] of Object.entries({ ...server.environment, AWS_ENDPOINT_URL: server.endpoint }))
    console.log(`export ${name}=${value}`);
  console.log(`pico serve --storage 's3://${MINIO_BUCKET}'`);
  await new Promise<void>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
  });
  await server.stop();
  return 0;
}

if (import.meta.main) process.exit(await main(process.argv.slice(2)));

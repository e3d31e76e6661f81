/**
 * Somebody who creates keys that are taken, again and again, with other bytes: the store may refuse or fail, and never
 * say yes. Else no WAL could be fenced in it.
 */
import { GetObjectCommand, PutObjectCommand, type S3Client } from "@aws-sdk/client-s3";
import { MINIO_BUCKET, type MinioServer } from "../../scripts/minio.ts";

const KEYS = 16;
const TRY_MS_MAX = 2000;
const PAUSE_MS = 20;

export class Rival {
  readonly #client: S3Client;
  readonly #stopping = new AbortController();
  readonly #problems: string[] = [];
  #running: Promise<void> = Promise.resolve();
  refusals = 0;

  private constructor(client: S3Client) {
    this.#client = client;
  }

  static async start(minio: MinioServer): Promise<Rival> {
    const rival = new Rival(minio.client());
    for (let at = 0; at < KEYS; at++) await rival.#create(at, "first");
    rival.#running = rival.#run();
    return rival;
  }

  /** Returns what went wrong. */
  async stop(): Promise<readonly string[]> {
    if (this.#stopping.signal.aborted) return this.#problems;
    this.#stopping.abort();
    await this.#running;
    for (let at = 0; at < KEYS; at++) {
      const { Body } = await this.#client.send(new GetObjectCommand({ Bucket: MINIO_BUCKET, Key: keyOf(at) }));
      const stored = await Body?.transformToString();
      if (stored !== "first") this.#problems.push(`${keyOf(at)} holds ${stored}`);
    }
    if (this.refusals === 0) this.#problems.push("no create of a taken key was refused");
    this.#client.destroy();
    return this.#problems;
  }

  async #run(): Promise<void> {
    for (let round = 0; !this.#stopping.signal.aborted; round++) {
      const at = round % KEYS;
      try {
        await this.#create(at, `second ${round}`);
        this.#problems.push(`${keyOf(at)} was created twice`);
      } catch (error) {
        // Anything else says nothing.
        if (error instanceof Error && error.name === "PreconditionFailed") this.refusals += 1;
      }
      await Bun.sleep(PAUSE_MS);
    }
  }

  async #create(at: number, body: string): Promise<void> {
    const command = new PutObjectCommand({ Bucket: MINIO_BUCKET, Key: keyOf(at), Body: body, IfNoneMatch: "*" });
    await this.#client.send(command, { abortSignal: AbortSignal.timeout(TRY_MS_MAX) });
  }
}

function keyOf(at: number): string {
  return `rival/${at}`;
}

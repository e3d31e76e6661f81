/** Bare requests to a bucket, as little as they can be: a presigned address and `fetch`. What a server on top of them is compared with. */
import { ListObjectsV2Command } from "@aws-sdk/client-s3";
import { MINIO_BUCKET, MINIO_CREDENTIALS, type MinioServer } from "../../scripts/minio.ts";

const GET_BYTES = 1 << 20;
const ADDRESS_SECONDS = 3600;

export interface StoredObject {
  readonly key: string;
  readonly bytes: number;
}

export class BareStore {
  readonly #minio: MinioServer;
  readonly #client: Bun.S3Client;

  constructor(minio: MinioServer) {
    this.#minio = minio;
    this.#client = new Bun.S3Client({ ...MINIO_CREDENTIALS, endpoint: minio.endpoint, bucket: MINIO_BUCKET, region: "us-east-1" });
  }

  /** Milliseconds that one conditional create took. */
  async put(key: string, body: Uint8Array<ArrayBuffer>): Promise<number> {
    const address = this.#client.presign(key, { method: "PUT", expiresIn: ADDRESS_SECONDS });
    const startedMs = performance.now();
    const response = await fetch(address, { method: "PUT", headers: { "if-none-match": "*" }, body });
    await response.arrayBuffer();
    if (response.status !== 200) throw new Error(`PUT ${key} answers ${response.status}`);
    return performance.now() - startedMs;
  }

  /** Reads the objects one behind the other in ranges of 1 MiB; returns the bytes. */
  async readAll(objects: readonly StoredObject[]): Promise<number> {
    let read = 0;
    for (const { key, bytes } of objects) {
      const address = this.#client.presign(key, { method: "GET", expiresIn: ADDRESS_SECONDS });
      for (let from = 0; from < bytes; from += GET_BYTES) {
        const range = `bytes=${from}-${Math.min(from + GET_BYTES, bytes) - 1}`;
        const response = await fetch(address, { headers: { range } });
        if (response.status !== 206) throw new Error(`GET ${key} answers ${response.status}`);
        read += (await response.arrayBuffer()).byteLength;
      }
    }
    return read;
  }

  async list(prefix: string): Promise<readonly StoredObject[]> {
    const client = this.#minio.client();
    const objects: StoredObject[] = [];
    let token: string | undefined;
    do {
      const page = await client.send(new ListObjectsV2Command({ Bucket: MINIO_BUCKET, Prefix: prefix, ContinuationToken: token }));
      for (const { Key, Size } of page.Contents ?? []) objects.push({ key: Key ?? "", bytes: Size ?? 0 });
      token = page.NextContinuationToken;
    } while (token !== undefined);
    client.destroy();
    return objects;
  }
}

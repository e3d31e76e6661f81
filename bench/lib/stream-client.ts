/** As much of a client as preparing a benchmark takes: creates, appends, and where a read of the last record begins. */

/** Requests under way at a time while streams are prepared. */
const PARALLEL = 32;

export type Protocol = "durableStreams" | "pico";

export interface StreamTarget {
  readonly url: string;
  readonly protocol: Protocol;
}

export async function createStream({ url }: StreamTarget, path: string, contentType: string): Promise<void> {
  await send(`${url}${path}`, { method: "PUT", headers: { "content-type": contentType } }, [200, 201]);
}

/** Returns the offset behind the record, as a read takes it. */
export async function append(
  { url, protocol }: StreamTarget,
  path: string,
  contentType: string,
  body: Uint8Array<ArrayBuffer>,
): Promise<string> {
  const response = await send(`${url}${path}`, { method: "POST", headers: { "content-type": contentType }, body }, [200, 204]);
  const next = response.headers.get(protocol === "pico" ? "pico-next-seq" : "stream-next-offset");
  if (next === null) throw new Error(`${url} does not say the next offset`);
  return next;
}

/** Bytes of the body that a GET answers with. */
export async function readSize({ url }: StreamTarget, path: string): Promise<number> {
  const response = await fetch(`${url}${path}`);
  if (response.status !== 200) throw new Error(`GET ${url}${path} answers ${response.status}`);
  return (await response.arrayBuffer()).byteLength;
}

/** Runs `work` for 0 to `count - 1`, a bounded number at a time. */
export async function forEachParallel(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const run = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: Math.min(PARALLEL, count) }, run));
}

async function send(url: string, init: RequestInit, expected: readonly number[]): Promise<Response> {
  const response = await fetch(url, init);
  const text = await response.text();
  if (!expected.includes(response.status)) throw new Error(`${init.method} ${url} answers ${response.status}: ${text.slice(0, 200)}`);
  return response;
}

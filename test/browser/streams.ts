/** Streams for the pages to show, made through the Pico listener. */
import { encodeStreamPath } from "../../src/protocol/stream-name.ts";

/** Requests under way at once, for many names. */
const IN_FLIGHT = 64;

export async function createStream(picoUrl: string, name: string, headers: Record<string, string> = {}): Promise<void> {
  const answer = await fetch(picoUrl + encodeStreamPath(name), {
    method: "PUT",
    headers: { "content-type": "application/json", ...headers },
  });
  if (answer.status !== 201) throw new Error(`create ${name}: ${answer.status} ${await answer.text()}`);
}

export async function createStreams(picoUrl: string, names: readonly string[]): Promise<void> {
  const waiting = [...names];
  const work = async () => {
    for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) await createStream(picoUrl, name);
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, work));
}

export async function append(picoUrl: string, name: string, body: string, headers: Record<string, string> = {}): Promise<void> {
  const answer = await fetch(picoUrl + encodeStreamPath(name), { method: "POST", body, headers });
  if (!answer.ok) throw new Error(`append to ${name}: ${answer.status} ${await answer.text()}`);
}

/** Appends `count` records in one request; `bodyOf` makes each. */
export async function appendMany(picoUrl: string, name: string, count: number, bodyOf: (index: number) => string): Promise<void> {
  const records = Array.from({ length: count }, (_, index) => ({ key: `key-${index % 7}`, body: bodyOf(index) }));
  await append(picoUrl, name, JSON.stringify({ records }), { "content-type": "application/vnd.picomq.batch+json" });
}

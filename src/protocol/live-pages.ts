/**
 * The pages of an event stream, one at a time: what is there, then waits for more. Quiet times are filled
 * with comments. Ends when the stream is closed and drained, deleted, or moved away; the data that came
 * with a close is sent before the close is told.
 */
import { isPicoError } from "../lib/errors.ts";
import { SSE_HEARTBEAT_MS } from "../lib/limits.ts";
import type { ReadPage, ReadRequest, StreamService } from "../streams/stream-service.ts";
import type { EventSource } from "./live-reads.ts";
import { SSE_COMMENT } from "./sse-encoder.ts";

export type PageSource = EventSource;

/** `first` is the page that `request` was answered with. An empty one is sent too: it says where the reader stands. */
export function makePageSource(
  service: StreamService,
  first: ReadPage,
  request: ReadRequest,
  encode: (page: ReadPage) => Uint8Array,
): PageSource {
  let pending: ReadPage | null = first;
  let last = first;

  /** The next page worth sending; null: the stream ends. "quiet": nothing came for a while. */
  async function findPage(signal: AbortSignal): Promise<ReadPage | null | "quiet"> {
    while (!signal.aborted) {
      if (last.isUpToDate) {
        const outcome = await service.wait(last.info.streamId, last.next, SSE_HEARTBEAT_MS, signal);
        if (outcome === "deleted" || outcome === "moved") return null;
        if (outcome === "timeout") return signal.aborted ? null : "quiet";
      }
      const page = await service.read({ ...request, from: last.next });
      if (page.info.streamId !== last.info.streamId) return null;
      last = page;
      if (page.next > page.from || page.isEnd) return page;
    }
    return null;
  }

  return {
    async next(signal) {
      if (pending !== null) {
        const page = pending;
        pending = null;
        return encode(page);
      }
      if (last.isEnd) return null;
      try {
        const page = await findPage(signal);
        if (page === "quiet") return SSE_COMMENT;
        return page === null ? null : encode(page);
      } catch (error) {
        // The stream went away, or this node may not serve it now: the client asks again and is told.
        if (isPicoError(error) && error.code !== "corrupt") return null;
        throw error;
      }
    },
  };
}

/**
 * Server-sent events out of a streamed answer. `EventSource` would hide what a refusal says, and come back by
 * rules of its own.
 */

/** A larger event ends the stream; the largest record fits, as base64. */
const EVENT_CHARS_MAX = 64 * 1024 * 1024;
/** Comments come every 15 s: silence this long is a broken connection. */
const SILENCE_MS_MAX = 40_000;

/** Yields `{ event, data }` until the answer ends; throws if it breaks or is silent. */
export async function* readEvents(response, abort) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let timer = null;
  let rest = "";
  let endsInLine = false;
  try {
    while (true) {
      timer = setTimeout(() => abort.abort(new Error("the event stream is silent")), SILENCE_MS_MAX);
      const { value, done } = await reader.read();
      clearTimeout(timer);
      if (done) return;
      // Only a piece that ends an event has the whole looked through: a large event comes in thousands of them.
      const isEnd = value.includes("\n\n") || (endsInLine && value.startsWith("\n"));
      endsInLine = value.endsWith("\n");
      rest += value;
      let end = isEnd ? rest.indexOf("\n\n") : -1;
      while (end >= 0) {
        const event = parseEvent(rest.slice(0, end));
        rest = rest.slice(end + 2);
        if (event !== null) yield event;
        end = rest.indexOf("\n\n");
      }
      if (rest.length > EVENT_CHARS_MAX) throw new Error("an event is larger than this page takes");
    }
  } finally {
    clearTimeout(timer);
    reader.cancel().catch(() => {
      // The connection is gone already.
    });
  }
}

/** Null for a block of comments. The server ends lines with LF. */
function parseEvent(block) {
  let event = "message";
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) event = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
  }
  return data.length === 0 ? null : { event, data: data.join("\n") };
}

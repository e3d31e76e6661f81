/** `pico ls`: the streams of a server. */
import { PicoClient } from "../client/pico-client.ts";
import type { PicoListItem } from "../client/pico-list.ts";
import { utf8Encoder } from "../lib/bytes.ts";
import { LIST_LIMIT_MAX, OFFSET_MAX } from "../lib/limits.ts";
import { readClientSettings, toClientOptions } from "./client-flags.ts";
import type { CommandDefinition } from "./command-definition.ts";
import { unsupported } from "./failure.ts";
import { defineCallFlag } from "./flag-definition.ts";
import { toOutputLines, toPlainLine } from "./terminal-text.ts";

export const LS_COMMAND: CommandDefinition = {
  name: "ls",
  summary: "list streams",
  description: [
    "Prints a line a stream, in byte order of the names: NAME start=FIRST next=BEHIND-THE-LAST closed=true|false; - where the server that answers does not know. " +
      "Says on stderr when there are more. Durable Streams has no such list.",
  ],
  operands: [],
  flags: [
    defineCallFlag("--prefix", "PREFIX", "beginning of the names", "/"),
    defineCallFlag("--limit", "NUMBER", "streams to print, at most; 0: as many as the server gives at once", 0),
    defineCallFlag("--after", "NAME", "begin behind this name", null),
  ],
  isClient: true,
  examples: [
    { line: "pico ls --prefix /logs/", does: "the streams below /logs" },
    { line: "pico ls --limit 100 --after /logs/app", does: "the hundred behind /logs/app" },
  ],
  async run({ values, self }) {
    const settings = readClientSettings(values);
    const prefix = values.text("--prefix")?.text ?? "/";
    const after = values.text("--after")?.text;
    const limit = values.number("--limit", 0, OFFSET_MAX) ?? 0;
    if (settings.protocol === "ds") throw unsupported("Durable Streams has no stream listing; use --protocol pico");
    const client = new PicoClient(toClientOptions(settings));
    let left = limit === 0 ? null : limit;
    let cursor: string | undefined;
    do {
      const pageSize = left === null ? {} : { pageSize: Math.min(left, LIST_LIMIT_MAX) };
      const page = await client.listPage({
        prefix,
        ...pageSize,
        ...(cursor === undefined ? {} : { cursor }),
        ...(after === undefined ? {} : { after }),
      });
      const lines = utf8Encoder.encode(page.items.map(describe).join(""));
      await self.output.write(toOutputLines(lines, self.isOutputTerminal));
      left = left === null ? 0 : left - page.items.length;
      cursor = page.next ?? undefined;
      if (cursor !== undefined && left <= 0)
        self.errors.write(`${toPlainLine(`pico: there are more streams; go on with --after ${page.items.at(-1)?.name ?? ""}`)}\n`);
    } while (cursor !== undefined && left > 0);
    return 0;
  },
};

function describe({ name, start, tail, isClosed }: PicoListItem): string {
  return `${name} start=${start ?? "-"} next=${tail ?? "-"} closed=${isClosed}\n`;
}

/** How a command below `pico admin` prints what the node answered. */
import { utf8Encoder } from "../lib/bytes.ts";
import type { AdminReply } from "./admin-client.ts";
import type { CommandCall } from "./command-definition.ts";
import { toOutputLines } from "./terminal-text.ts";

/** With `--json` the answer itself, else the lines that are made of it. */
export async function printReply<Answer>(
  { values, self }: CommandCall,
  reply: AdminReply<Answer>,
  toLines: (answer: Answer) => readonly string[],
): Promise<void> {
  const text = values.isOn("--json")
    ? reply.toJson()
    : toLines(reply.answer)
        .map((line) => `${line}\n`)
        .join("");
  await self.output.write(toOutputLines(utf8Encoder.encode(text), self.isOutputTerminal));
}

/** An absent text. */
export function textOr(text: string | null): string {
  return text === null || text === "" ? "-" : text;
}

/** Until when an operator holds removal back. */
export function describeHold(heldUntilMs: number | null): string {
  return heldUntilMs === null ? "false" : `until ${new Date(heldUntilMs).toISOString()}`;
}

/** Commands below one word, `pico admin nodes`, with flags that all of them take before or behind themselves. */
import type { CommandDefinition } from "./command-definition.ts";
import type { FlagDefinition } from "./flag-definition.ts";

export interface CommandGroup {
  readonly name: string;
  /** One line, in the list of commands. */
  readonly summary: string;
  /** Paragraphs; the help breaks their lines itself. */
  readonly description: readonly string[];
  /** Their variables stand for them too. */
  readonly flags: readonly FlagDefinition[];
  /** As the help lists them. */
  readonly commands: readonly CommandDefinition[];
}

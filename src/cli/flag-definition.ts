/** A flag as the command line accepts it and the help shows it. */
import { Option } from "commander";
import { variableOf } from "./flag-values.ts";

export interface FlagDefinition {
  /** `--node-id`. */
  readonly flag: string;
  /** One letter with its dash; absent where there is none. */
  readonly short?: string;
  /** Stands for the value in the help; `null` for a switch; `...` at its end allows several. `a|b`: one of these words. */
  readonly value: string | null;
  readonly help: string;
  /** As the help shows it; null where there is none. */
  readonly defaultText: string | null;
  /** Environment variables that stand for it, the first one wins; none where it is empty. @default the one named like the flag */
  readonly variables?: readonly string[];
}

export function defineFlag(flag: string, value: string | null, help: string, defaultValue: string | number | null): FlagDefinition {
  return { flag, value, help, defaultText: defaultValue === null ? null : String(defaultValue) };
}

/** A flag that only the command line sets: what is true of one call and not of all. */
export function defineCallFlag(flag: string, value: string | null, help: string, defaultValue: string | number | null): FlagDefinition {
  return { ...defineFlag(flag, value, help, defaultValue), variables: [] };
}

export function variablesOf({ flag, variables }: FlagDefinition): readonly string[] {
  return variables ?? [variableOf(flag)];
}

/** As commander takes it: values stay texts. */
export function toOption(definition: FlagDefinition): Option {
  const { flag, short, value, help, defaultText } = definition;
  const variables = variablesOf(definition);
  const names = short === undefined ? flag : `${short}, ${flag}`;
  const notes = [
    defaultText === null ? [] : [`default: ${defaultText}`],
    variables.length === 0 ? [] : [`env: ${variables.join(", then ")}`],
  ].flat();
  const note = notes.length === 0 ? "" : ` (${notes.join("; ")})`;
  return new Option(`${names}${value === null ? "" : ` <${value}>`}`, `${help}${note}`);
}

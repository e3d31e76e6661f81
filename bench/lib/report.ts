/** The tables of the HTTP benchmark. */
import { median, ratio, spread } from "./statistics.ts";
import type { Protocol } from "./stream-client.ts";
import type { SubjectId } from "./subjects.ts";
import type { Figures, Workload } from "./workloads.ts";

/** Ratios are to this one, over the protocol that all of them speak. */
const REFERENCE: SubjectId = "rust";

export interface MeasuredTarget {
  readonly subject: SubjectId;
  readonly protocol: Protocol;
  /** The figures of the workload, and `cpu`: microseconds of the server's processor time an operation. */
  readonly rounds: Figures[];
  /** How it failed under the load; null where it did not. */
  failure: string | null;
}

/** A Markdown table under the workload's title. */
export function renderWorkload(workload: Workload, targets: readonly MeasuredTarget[]): string {
  const reference = targets.find(({ subject, failure }) => subject === REFERENCE && failure === null);
  const names = workload.figures.map(({ name, unit }) => `${name} ${unit}`);
  const heads = ["server", ...names.flatMap((name) => [name, "±", `x ${REFERENCE}`]), "cpu µs/op"];
  const rows = targets
    .filter(({ failure }) => failure === null)
    .map((target) => {
      const label = labelOf(target);
      const cells = workload.figures.flatMap(({ name }) => {
        const values = valuesOf(target, name);
        const references = reference === undefined ? [] : valuesOf(reference, name);
        const share = references.length === 0 ? "-" : ratio(values, references).toFixed(2);
        return [formatFigure(median(values)), `${Math.round(spread(values) * 100)} %`, share];
      });
      return [label, ...cells, median(valuesOf(target, "cpu")).toFixed(1)];
    });
  const failures = targets.filter(({ failure }) => failure !== null).map((target) => `\n${labelOf(target)} failed: ${target.failure}`);
  return `${workload.title} [${workload.id}]\n\n${renderTable([heads, ...rows])}${failures.join("")}`;
}

export function renderTable(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) => `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`);
  lines.splice(1, 0, `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`);
  return lines.join("\n");
}

function labelOf({ subject, protocol }: MeasuredTarget): string {
  return `${subject}${protocol === "pico" ? " (Pico)" : ""}`;
}

function valuesOf(target: MeasuredTarget, name: string): readonly number[] {
  return target.rounds.map((figures) => figures[name] ?? Number.NaN);
}

function formatFigure(value: number): string {
  return value >= 100 ? Math.round(value).toString() : value.toFixed(value >= 10 ? 1 : 3);
}

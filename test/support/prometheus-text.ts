/**
 * The text format of Prometheus, version 0.0.4, read strictly: each series belongs to a metric that was
 * announced with HELP and TYPE, once; no series comes twice; histograms are whole and rise.
 */

export interface ParsedMetric {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly series: readonly { readonly name: string; readonly labels: Readonly<Record<string, string>>; readonly value: number }[];
}

const NAME = "[a-zA-Z_:][a-zA-Z0-9_:]*";
const HELP = new RegExp(`^# HELP (${NAME}) (.+)$`);
const TYPE = new RegExp(`^# TYPE (${NAME}) (counter|gauge|histogram)$`);
const SERIES = new RegExp(`^(${NAME})(?:\\{(.*)\\})? (-?[0-9.]+(?:e[+-]?[0-9]+)?|\\+Inf|NaN)$`);
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)/y;

/** Throws where the text breaks the format. */
export function parsePrometheusText(text: string): ReadonlyMap<string, ParsedMetric> {
  if (!text.endsWith("\n")) throw new Error("the last line has no end");
  const metrics = new Map<string, { name: string; type: string; help: string; series: ParsedMetric["series"][number][] }>();
  const seen = new Set<string>();
  let current: { name: string; type: string; help: string; series: ParsedMetric["series"][number][] } | null = null;
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const help = HELP.exec(line);
    if (help !== null) {
      const [, name = "", words = ""] = help;
      if (metrics.has(name)) throw new Error(`${name} is announced twice`);
      current = { name, type: "", help: words, series: [] };
      metrics.set(name, current);
      continue;
    }
    const type = TYPE.exec(line);
    if (type !== null) {
      if (current === null || current.name !== type[1] || current.type !== "") throw new Error(`TYPE without its HELP: ${line}`);
      current.type = type[2] ?? "";
      continue;
    }
    const [, name = "", labelText = "", value = ""] = SERIES.exec(line) ?? [];
    if (current === null || current.type === "" || name === "") throw new Error(`no series of an announced metric: ${line}`);
    const suffix = name.slice(current.name.length);
    const suffixes = current.type === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
    if (!name.startsWith(current.name) || !suffixes.includes(suffix)) throw new Error(`${name} stands below ${current.name}`);
    const labels = parseLabels(labelText);
    const key = `${name} ${JSON.stringify(Object.entries(labels).sort())}`;
    if (seen.has(key)) throw new Error(`a series comes twice: ${line}`);
    seen.add(key);
    current.series.push({ name, labels, value: value === "+Inf" ? Number.POSITIVE_INFINITY : Number(value) });
  }
  for (const metric of metrics.values()) if (metric.type === "histogram") checkHistogram(metric);
  return metrics;
}

function parseLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  LABEL.lastIndex = 0;
  while (LABEL.lastIndex < text.length) {
    const [, name = "", value = ""] = LABEL.exec(text) ?? [];
    if (name === "" || name in labels) throw new Error(`malformed labels: ${text}`);
    labels[name] = value;
  }
  return labels;
}

/** Buckets rise with their bounds, and the last one is the count. */
function checkHistogram({ name, series }: ParsedMetric): void {
  const groups = Map.groupBy(series, ({ labels: { le: _, ...others } }) => JSON.stringify(Object.entries(others).sort()));
  for (const [key, group] of groups) {
    const buckets = group.filter((one) => one.name === `${name}_bucket`);
    const bounds = buckets.map(({ labels }) => (labels.le === "+Inf" ? Number.POSITIVE_INFINITY : Number(labels.le)));
    const counts = buckets.map(({ value }) => value);
    const rises = (values: readonly number[], isStrict: boolean) =>
      values.every((value, at) => at === 0 || (isStrict ? value > (values[at - 1] ?? 0) : value >= (values[at - 1] ?? 0)));
    const total = group.find((one) => one.name === `${name}_count`)?.value;
    const hasSum = group.some((one) => one.name === `${name}_sum`);
    if (!rises(bounds, true) || !rises(counts, false) || bounds.at(-1) !== Number.POSITIVE_INFINITY)
      throw new Error(`buckets of ${name} ${key}`);
    if (counts.at(-1) !== total || !hasSum) throw new Error(`count or sum of ${name} ${key}`);
  }
}

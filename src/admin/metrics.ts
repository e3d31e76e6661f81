/**
 * Words the metrics for Prometheus. Nothing is counted here: a scrape reads what the node's parts have
 * counted anyway, so its cost follows the number of metrics, and requests get their turns between two of them.
 */
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { Clock } from "../lib/clock.ts";
import type { Durations, HistogramDefinition, Labels, MetricDefinition, ValueDefinition } from "./metric-definitions.ts";
import type { NodeFigures } from "./node-figures.ts";

/** Upper bounds of the buckets that are shown: powers of two, which the counted buckets meet exactly. */
export const BUCKET_BOUNDS_MS: readonly number[] = Array.from({ length: 18 }, (_, at) => 2 ** (at - 2));

export class MetricsText {
  readonly #registry = new Registry();
  readonly #definitions: readonly MetricDefinition[];
  readonly #clock: Pick<Clock, "soon">;
  readonly #figures: () => Promise<NodeFigures>;
  /** What the scrape under way words. */
  #current: NodeFigures | null = null;
  #scrape: Promise<string> | null = null;

  constructor(definitions: readonly MetricDefinition[], clock: Pick<Clock, "soon">, figures: () => Promise<NodeFigures>) {
    this.#definitions = definitions;
    this.#clock = clock;
    this.#figures = figures;
    const current = () => this.#current;
    for (const definition of definitions) {
      if (definition.type === "histogram") new FigureHistogram(definition, this.#registry, current);
      else registerValues(definition, this.#registry, current);
    }
  }

  /** Those who ask while one answer is being made share it. */
  text(): Promise<string> {
    this.#scrape ??= this.#word().finally(() => {
      this.#scrape = null;
    });
    return this.#scrape;
  }

  async #word(): Promise<string> {
    this.#current = await this.#figures();
    const texts: string[] = [];
    for (const { name } of this.#definitions) {
      texts.push(await this.#registry.getSingleMetricAsString(name));
      await new Promise<void>((resolve) => this.#clock.soon(resolve));
    }
    return `${texts.join("\n")}\n`;
  }
}

function registerValues({ type, name, help, labels, read }: ValueDefinition, registry: Registry, current: () => NodeFigures | null): void {
  const base = { name, help, labelNames: [...labels], registers: [registry] };
  const values = () => {
    const figures = current();
    return figures === null ? [] : read(figures);
  };
  // A reset leaves a metric without labels at 0, which is not the same as no value: that is removed.
  if (type === "gauge") {
    new Gauge({
      ...base,
      collect() {
        this.reset();
        this.remove({});
        for (const { labels: of, value } of values()) this.set(of, value);
      },
    });
    return;
  }
  new Counter({
    ...base,
    collect() {
      this.reset();
      this.remove({});
      for (const { labels: of, value } of values()) this.inc(of, value);
    },
  });
}

/**
 * A histogram that was counted elsewhere. The registry takes what it words from `getForPromString`, which the
 * package's types leave out.
 */
class FigureHistogram extends Histogram {
  readonly #definition: HistogramDefinition;
  readonly #current: () => NodeFigures | null;

  constructor(definition: HistogramDefinition, registry: Registry, current: () => NodeFigures | null) {
    const { name, help, labels } = definition;
    super({ name, help, labelNames: [...labels], registers: [registry] });
    this.#definition = definition;
    this.#current = current;
  }

  async getForPromString() {
    const { name, help, read } = this.#definition;
    const figures = this.#current();
    const values = figures === null ? [] : read(figures).flatMap((one) => seriesOf(name, one));
    return { name, help, type: "histogram", values };
  }
}

interface Series {
  readonly metricName: string;
  readonly sharedLabels: Labels;
  readonly labels: Labels;
  readonly value: number;
}

function seriesOf(name: string, { labels: sharedLabels, durations }: Durations): Series[] {
  const counts = durations.cumulativeCounts(BUCKET_BOUNDS_MS);
  const bucket = (le: string, value: number) => ({ metricName: `${name}_bucket`, sharedLabels, labels: { le }, value });
  return [
    ...BUCKET_BOUNDS_MS.map((boundMs, at) => bucket(String(boundMs / 1000), counts[at] ?? 0)),
    bucket("+Inf", durations.count),
    { metricName: `${name}_sum`, sharedLabels, labels: {}, value: durations.sumMs / 1000 },
    { metricName: `${name}_count`, sharedLabels, labels: {}, value: durations.count },
  ];
}

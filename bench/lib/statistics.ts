/** Medians and spreads of a few rounds. */

/** Of at least one value. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right);
  const upper = sorted[sorted.length >> 1];
  const lower = sorted[(sorted.length - 1) >> 1];
  if (upper === undefined || lower === undefined) throw new Error("a median needs a value");
  return (lower + upper) / 2;
}

/** Half the distance from the smallest to the largest value, as a share of the median. */
export function spread(values: readonly number[]): number {
  return (Math.max(...values) - Math.min(...values)) / 2 / median(values);
}

/** The median of the ratios within each round: what both did under the same disk at nearly the same time. */
export function ratio(values: readonly number[], references: readonly number[]): number {
  const count = Math.min(values.length, references.length);
  return median(Array.from({ length: count }, (_, round) => (values[round] ?? Number.NaN) / (references[round] ?? Number.NaN)));
}

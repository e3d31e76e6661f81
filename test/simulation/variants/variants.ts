/** Nodes that are broken on purpose: each must be caught by some seed, or the checkers prove nothing. */
import type { NodeFactory } from "../cluster.ts";

export interface Variant {
  readonly name: string;
  /** What is wrong with it. */
  readonly fault: string;
  readonly factory: NodeFactory;
}

export const VARIANTS: readonly Variant[] = [];

export function findVariant(name: string): Variant {
  const variant = VARIANTS.find((candidate) => candidate.name === name);
  if (variant === undefined)
    throw new Error(`no variant ${JSON.stringify(name)}; there are ${VARIANTS.map((known) => known.name).join(", ")}`);
  return variant;
}

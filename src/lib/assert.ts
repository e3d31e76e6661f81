/**
 * Invariants stay checked in production: a broken one means that the state cannot be trusted, and
 * the node stops rather than go on with it.
 */
export class InvariantError extends Error {
  override readonly name = "InvariantError";
}

/** Throws `InvariantError` unless the condition holds. State the fact that must be true. */
export function assert(condition: boolean, fact: string): asserts condition {
  if (!condition) throw new InvariantError(`broken invariant: ${fact}`);
}

/** The compiler proves that this is never reached; at run time it stops the node. */
export function unreachable(value: never): never {
  throw new InvariantError(`unhandled case: ${JSON.stringify(value)}`);
}

/**
 * One life of a node: its id and the epoch of that life. Epochs of a node id rise and are never reused,
 * so the pair names a WAL, a proposer and an owner for ever.
 */
export interface RegistrationName {
  /** Chosen by the operator, stable over restarts; a 32-bit signed integer. */
  readonly nodeId: number;
  /** max(now, last + 1) in ms since 1970, chosen at start. */
  readonly nodeEpoch: number;
}

export function sameRegistration(left: RegistrationName | null, right: RegistrationName | null): boolean {
  if (left === null || right === null) return left === right;
  return left.nodeId === right.nodeId && left.nodeEpoch === right.nodeEpoch;
}

/** For messages: `1@1760000000000`. */
export function formatRegistration(name: RegistrationName): string {
  return `${name.nodeId}@${name.nodeEpoch}`;
}

/** What a lock that death alone releases says about earlier lives of a node id. */
export interface LifeLock {
  /** Whether the process of that life is certainly dead: it held the lock, which is ours now. */
  provesDeathOf(nodeEpoch: number): boolean;
  /** This process lives as that epoch from now on, and says so where the next holder looks. */
  noteLife(nodeEpoch: number): Promise<void>;
}

/** Where no lock tells: another host may have taken the node id. Whoever lived before is watched, and fenced where it stands still. */
export const UNPROVEN_LIFE: LifeLock = {
  provesDeathOf: () => false,
  noteLife: async () => {},
};

/** Of a lock without which nobody goes on, such as that of a WAL's directory: whoever lived before held it. */
export const EXCLUSIVE_LIFE: LifeLock = {
  provesDeathOf: () => true,
  noteLife: async () => {},
};

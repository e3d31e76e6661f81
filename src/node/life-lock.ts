/** What a lock that death alone releases says about earlier lives of a node id. */
export interface LifeLock {
  /** Whether the process of that life is certainly dead: it held the lock, which is ours now. */
  provesDeathOf(nodeEpoch: number): boolean;
  /** This process lives as that epoch from now on, and says so where the next holder looks. */
  noteLife(nodeEpoch: number): Promise<void>;
}

/** Of a lock without which nobody goes on, such as that of a WAL's directory: whoever lived before held it. */
export const EXCLUSIVE_LIFE: LifeLock = {
  provesDeathOf: () => true,
  noteLife: async () => {},
};

/**
 * What the command log says about streams, as the model needs it: which lives a name had and when. True
 * times are those of the run, at which the row of the command entered the log.
 */
import type { ForkOrigin, StreamSettings } from "../../../src/metadata/command.ts";

/** A moment by the database's clock. */
export interface DatabaseTime {
  readonly atMs: number;
  /** By how much the clock had been set back by then: with it added, time never falls. */
  readonly setBackMs: number;
}

/** One life of a name: from its create to its removal. */
export interface LifeFacts {
  readonly streamId: number;
  readonly name: string;
  readonly settings: StreamSettings;
  readonly fork: ForkOrigin | null;
  readonly isCreatedClosed: boolean;
  readonly createdMs: number;
  /** Of the row that created it. */
  readonly createdAt: DatabaseTime;
  /** When its delete or expiry entered the log; null while it lives. */
  removedMs: number | null;
  /** It was removed by expiry, then. */
  expiredAt: DatabaseTime | null;
}

export interface LifeLog {
  life(streamId: number): LifeFacts | null;
  /** All lives of a name, oldest first. */
  livesOf(name: string): readonly LifeFacts[];
  lives(): Iterable<LifeFacts>;
  databaseNow(): DatabaseTime;
}

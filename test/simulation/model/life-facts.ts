/**
 * What the command log says about streams, as the model needs it: which lives a name had and when. True
 * times are those of the run, at which the row of the command entered the log.
 */
import type { ForkOrigin, StreamSettings } from "../../../src/metadata/command.ts";

/** One life of a name: from its create to its removal. */
export interface LifeFacts {
  readonly streamId: number;
  readonly name: string;
  readonly settings: StreamSettings;
  readonly fork: ForkOrigin | null;
  readonly isCreatedClosed: boolean;
  readonly createdMs: number;
  /** Database time of the row that created it. */
  readonly createdDatabaseMs: number;
  /** When its delete or expiry entered the log; null while it lives. */
  removedMs: number | null;
  /** It was removed by expiry, at this database time. */
  expiredDatabaseMs: number | null;
}

export interface LifeLog {
  life(streamId: number): LifeFacts | null;
  /** All lives of a name, oldest first. */
  livesOf(name: string): readonly LifeFacts[];
  lives(): Iterable<LifeFacts>;
  /** The database's clock now. */
  databaseNowMs(): number;
}

/** What the admin listener asks the node. Answers are of the moment; none opens or claims a stream. */
import type { Static } from "@sinclair/typebox";
import type { Activity } from "./activity-schemas.ts";
import type { ClusterAnswer, NodesAnswer, ReadyAnswer, StreamAnswer } from "./admin-schemas.ts";
import type { GcAnswer, GcOrder } from "./gc-schemas.ts";
import type { ScrubAnswer, ScrubOrder } from "./scrub-schemas.ts";

export interface AdminSource {
  ready(): typeof ReadyAnswer.static;
  cluster(): typeof ClusterAnswer.static;
  /** With the samples that ended behind `sinceMs`; null: all of them. */
  activity(sinceMs: number | null): Activity;
  /** In the text format of Prometheus. */
  metrics(): Promise<string>;
  nodes(): typeof NodesAnswer.static;
  /**
   * Null where no stream has the name. Throws `unavailable` until the metadata is loaded. Rejects with `corrupt`
   * and what the store throws, which it asks for the stream's data objects.
   */
  stream(name: string): Promise<typeof StreamAnswer.static | null>;
  scrub(): Static<typeof ScrubAnswer>;
  /** Null where one is under way. Throws `unavailable` while the node does not serve. */
  startScrub(order: Static<typeof ScrubOrder>): Static<typeof ScrubAnswer> | null;
  removalHold(): Static<typeof GcAnswer>;
  /** Resolves when the hold, or its end, stands on this node. Rejects with `unavailable` while the node does not serve, and as a proposal does. */
  holdRemoval(order: Static<typeof GcOrder>): Promise<Static<typeof GcAnswer>>;
  /** Where clients reach the Durable Streams listener; null where there is none, or not yet. */
  durableStreamsUrl(): string | null;
}

/**
 * What the lease holder does in the background, a bounded piece a round: it expires streams that nobody
 * owns, and gives up prepared objects whose uploader never committed them. Both are commands that apply
 * checks again by the row's own time, so a holder that is late, or wrong, changes nothing.
 */
import { MAINTENANCE_COMMANDS_PER_ROUND, MAINTENANCE_STREAMS_PER_ROUND, PREPARED_OBJECT_GRACE_MS } from "../lib/limits.ts";
import type { Command } from "./command.ts";
import type { StreamEntry } from "./entries.ts";
import type { Proposal } from "./metadata.ts";
import type { MetadataState } from "./state.ts";

export interface MaintenanceOptions {
  readonly state: MetadataState;
  /** False: nothing is proposed, also in the middle of a round. */
  readonly isAllowed: () => boolean;
  readonly databaseNowMs: () => number;
  readonly propose: (command: Command) => Proposal;
}

export class Maintenance {
  readonly #options: MaintenanceOptions;
  /** Walks over all streams, a piece a round; null between two walks. */
  #walk: Iterator<StreamEntry> | null = null;

  constructor(options: MaintenanceOptions) {
    this.#options = options;
  }

  /** Returns how many commands it proposed and saw applied. */
  async round(): Promise<number> {
    if (!this.#options.isAllowed()) return 0;
    const commands = [...this.#dueStreams(), ...this.#abandonedObjects()].slice(0, MAINTENANCE_COMMANDS_PER_ROUND);
    const proposals: Proposal[] = [];
    for (const command of commands) if (this.#options.isAllowed()) proposals.push(this.#options.propose(command));
    const outcomes = await Promise.all(proposals.map((proposal) => proposal.outcome));
    return outcomes.filter((outcome) => outcome.applied).length;
  }

  *#dueStreams(): Generator<Command> {
    const { state, databaseNowMs } = this.#options;
    const nowMs = databaseNowMs();
    // A map's iterator survives changes of the map, so a walk can go on where the last round left it.
    this.#walk ??= state.streams()[Symbol.iterator]();
    for (let seen = 0; seen < MAINTENANCE_STREAMS_PER_ROUND; seen++) {
      const step = this.#walk.next();
      if (step.done) {
        this.#walk = null;
        return;
      }
      const entry = step.value;
      if (entry.isDeleted || (entry.settings.ttlSeconds === null && entry.settings.expiresAtMs === null)) continue;
      if (state.ownerOf(entry) !== null) continue;
      const deadlineMs = state.unownedDeadlineMs(entry);
      if (deadlineMs !== null && nowMs >= deadlineMs) yield { type: "expire_stream", streamId: entry.streamId, deadlineMs };
    }
  }

  /** One command an object: a neighbour that was committed meanwhile must not keep it. */
  *#abandonedObjects(): Generator<Command> {
    const { state, databaseNowMs } = this.#options;
    const nowMs = databaseNowMs();
    for (const entry of state.preparedObjects()) {
      if (nowMs >= entry.preparedUntilMs + PREPARED_OBJECT_GRACE_MS) yield { type: "destroy_objects", objectIds: [entry.objectId] };
    }
  }
}

/**
 * Nodes that are broken on purpose: each must be caught by some seed, or the checkers prove nothing. A
 * variant puts another component in, or replaces one method of the real ones for as long as it is
 * installed; the server itself knows nothing of it.
 */

import type { NodeFactory } from "../cluster.ts";
import { composeNodeFactory } from "../compose-node.ts";
import { AcknowledgeBeforeDurable } from "./acknowledge-before-durable.ts";
import { dropTailStates, dropWhatForksNeed, noteCompacting } from "./compaction-drops.ts";
import { deleteBeforeMarker } from "./delete-before-marker.ts";
import { deleteOnAbsence, watchParts } from "./delete-on-absence.ts";
import { forgetSessionsBeforeUpload } from "./forget-sessions-before-upload.ts";
import { OtherBytesOnRetry } from "./other-bytes-on-retry.ts";
import { removeBeforeApplied } from "./remove-before-applied.ts";
import { chooseTailStateByCommitOrder } from "./tail-state-by-commit-order.ts";
import { uploadNoPrefix } from "./upload-no-prefix.ts";

export interface Variant {
  readonly name: string;
  /** What is wrong with it. */
  readonly fault: string;
  readonly factory: NodeFactory;
  /** Breaks the process that runs it; returns what mends it again. */
  readonly install: () => () => void;
}

const nothing = () => () => {};

export const VARIANTS: readonly Variant[] = [
  {
    name: "acknowledge-before-durable",
    fault: "an append is acknowledged when its segment was handed to the WAL store, not when it is durable",
    factory: composeNodeFactory({ wal: (wal) => new AcknowledgeBeforeDurable(wal) }),
    install: nothing,
  },
  {
    name: "session-dropped-before-upload",
    fault: "an idle session is dropped, and its tail state with it, before a data object holds that",
    factory: composeNodeFactory(),
    install: forgetSessionsBeforeUpload,
  },
  {
    name: "tail-state-by-commit-order",
    fault: "of a stream's tail states the one in the object committed first counts, not the one with the highest change number",
    factory: composeNodeFactory(),
    install: chooseTailStateByCommitOrder,
  },
  {
    name: "upload-no-prefix",
    fault: "an upload leaves out the first segment of the interval that it commits",
    factory: composeNodeFactory(),
    install: uploadNoPrefix,
  },
  {
    name: "compaction-drops-tail-states",
    fault: "compaction carries the records of streams on and not their tail states",
    factory: composeNodeFactory(),
    install: dropTailStates,
  },
  {
    name: "compaction-drops-what-forks-need",
    fault: "compaction drops what a stream itself has trimmed, though forks still read it",
    factory: composeNodeFactory({ core: noteCompacting }),
    install: dropWhatForksNeed,
  },
  {
    name: "removal-before-mirror",
    fault: "what leaves the store does not wait until the mirror of the command log holds what allows it",
    factory: composeNodeFactory({
      core: ({ mirror }) => {
        const real = mirror?.cover.bind(mirror);
        // A start still waits; the removal gate asks behind it.
        let isStarted = false;
        if (mirror !== null && real !== undefined)
          mirror.cover = async (index) => {
            if (isStarted) return true;
            isStarted = await real(index);
            return isStarted;
          };
      },
    }),
    install: nothing,
  },
  {
    name: "other-bytes-on-retry",
    fault: "a segment number is tried again with other bytes: its header is made anew",
    factory: composeNodeFactory({ wal: (wal) => new OtherBytesOnRetry(wal) }),
    install: nothing,
  },
  {
    name: "remove-before-applied",
    fault: "a destroyed object is deleted before every live node has applied its destruction",
    factory: composeNodeFactory(),
    install: removeBeforeApplied,
  },
  {
    name: "delete-on-absence",
    fault: "objects are deleted because the metadata does not name them as live, and not because it names them as destroyed",
    factory: composeNodeFactory({ core: watchParts }),
    install: deleteOnAbsence,
  },
  {
    name: "delete-before-marker",
    fault: "segments and objects are deleted before the store holds a marker of the command that allows it",
    factory: composeNodeFactory(),
    install: deleteBeforeMarker,
  },
];

/** Throws where there is no variant of that name. */
export function findVariant(name: string): Variant {
  const variant = VARIANTS.find((candidate) => candidate.name === name);
  if (variant === undefined) {
    throw new Error(`no variant ${JSON.stringify(name)}; there are ${VARIANTS.map((known) => known.name).join(", ")}`);
  }
  return variant;
}

/** What compaction may do at a time, and when it begins; simulations and tests make it small. */
import {
  BLOCK_BYTES_TARGET,
  COMPACTION_DEAD_SHARE_MIN,
  COMPACTION_DEPTH_MAX,
  COMPACTION_INPUT_BYTES_MAX,
  COMPACTION_INPUTS_MAX,
  COMPACTION_INTERVAL_MS,
  COMPACTION_LEVEL_MAX,
  COMPACTION_LOOK_AGAIN_MS,
  COMPACTION_LOOK_PAUSE_MS,
  COMPACTION_LOOKS_PER_ROUND,
  COMPACTION_READ_BYTES,
  COMPACTION_WINDOW_BYTES_MAX,
  INDEX_LEAF_BYTES,
  OBJECT_BYTES_TARGET,
} from "../lib/limits.ts";
import type { CompactionLimits } from "./compaction-plan.ts";

export interface CompactionSettings extends CompactionLimits {
  /** Between two looks at what there is to do. */
  readonly intervalMs: number;
  /** Of the objects written: as of the writer. */
  readonly objectBytesTarget: number;
  readonly blockBytesTarget: number;
  readonly leafBytes: number;
  /** Bytes of all inputs together that are read ahead, and of one of them. */
  readonly readBytes: number;
  readonly windowBytesMax: number;
  /** Objects with this share of dead bytes are rewritten. Lower: less waste in the store, more rewriting. */
  readonly deadShareMin: number;
  /** Objects whose index is looked at in one round. */
  readonly looksPerRound: number;
  /** An object of which only a few streams died is looked at when its last look is this old. */
  readonly lookAgainMs: number;
  /** Between two looks at one object, however many of its streams die. */
  readonly lookPauseMs: number;
}

export const COMPACTION_SETTINGS: CompactionSettings = {
  depthMax: COMPACTION_DEPTH_MAX,
  inputsMax: COMPACTION_INPUTS_MAX,
  inputBytesMax: COMPACTION_INPUT_BYTES_MAX,
  smallBytes: OBJECT_BYTES_TARGET / COMPACTION_DEPTH_MAX,
  levelMax: COMPACTION_LEVEL_MAX,
  intervalMs: COMPACTION_INTERVAL_MS,
  objectBytesTarget: OBJECT_BYTES_TARGET,
  blockBytesTarget: BLOCK_BYTES_TARGET,
  leafBytes: INDEX_LEAF_BYTES,
  readBytes: COMPACTION_READ_BYTES,
  windowBytesMax: COMPACTION_WINDOW_BYTES_MAX,
  deadShareMin: COMPACTION_DEAD_SHARE_MIN,
  looksPerRound: COMPACTION_LOOKS_PER_ROUND,
  lookAgainMs: COMPACTION_LOOK_AGAIN_MS,
  lookPauseMs: COMPACTION_LOOK_PAUSE_MS,
};

/**
 * Makes snapshots come after as few commands as the options say: each applied command counts for many.
 * A run has hundreds of commands, and the server's own distance between two snapshots is a thousand.
 */
import { SNAPSHOT_EVERY_COMMANDS } from "../../src/lib/limits.ts";
import { Snapshotter } from "../../src/metadata/snapshotter.ts";

const { noteApplied } = Snapshotter.prototype;

/** Holds for all nodes built from now on; runs come one after the other. */
export function hastenSnapshots(everyCommands: number): void {
  const weight = SNAPSHOT_EVERY_COMMANDS / everyCommands;
  Snapshotter.prototype.noteApplied = function (this: Snapshotter, commandCount: number): void {
    noteApplied.call(this, commandCount * weight);
  };
}

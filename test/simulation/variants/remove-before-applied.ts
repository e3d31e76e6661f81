/** Removal waits for nobody: it takes what this node has applied for what every node has. */
import { MetadataLog } from "../../../src/metadata/metadata-log.ts";

export function removeBeforeApplied(): () => void {
  const { appliedByAll } = MetadataLog.prototype;
  MetadataLog.prototype.appliedByAll = async function (this: MetadataLog): Promise<number> {
    return this.view.appliedIndex;
  };
  return () => {
    MetadataLog.prototype.appliedByAll = appliedByAll;
  };
}

/** Removal by a list: what the store holds and the metadata does not name as live is taken for garbage. */
import { ObjectRemoval } from "../../../src/engine/object-removal.ts";
import type { NodeCore, NodeCoreComponents } from "../../../src/node/node-core.ts";

type Parts = Pick<NodeCoreComponents, "store"> & { readonly clusterId: string };

/** Of the node that lives; runs have one at a time. */
let parts: (Parts & { readonly core: NodeCore }) | null = null;

export function watchParts(core: NodeCore, components: NodeCoreComponents): void {
  parts = { store: components.store, clusterId: components.settings.clusterId, core };
}

export function deleteOnAbsence(): () => void {
  const { round } = ObjectRemoval.prototype;
  ObjectRemoval.prototype.round = async function (this: ObjectRemoval): Promise<void> {
    await round.call(this);
    if (parts === null) return;
    const { store, clusterId, core } = parts;
    const live = new Set<number>();
    for (const { objectId, state } of core.metadata.view.objects()) if (state === "live") live.add(objectId);
    const page = await store.list(`${clusterId}/data/`, { after: null, limit: 1000 });
    const garbage = page.objects.map(({ key }) => key).filter((key) => !live.has(Number(key.split("/")[3])));
    if (garbage.length > 0) await store.delete(garbage);
  };
  return () => {
    ObjectRemoval.prototype.round = round;
    parts = null;
  };
}

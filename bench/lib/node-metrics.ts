/** Figures from a node's `/metrics`, by name and labels as they stand there. */

export class NodeMetrics {
  readonly #values: ReadonlyMap<string, number>;

  private constructor(values: ReadonlyMap<string, number>) {
    this.#values = values;
  }

  static async read(adminUrl: string): Promise<NodeMetrics> {
    const response = await fetch(`${adminUrl}/metrics`);
    const values = new Map<string, number>();
    for (const line of (await response.text()).split("\n")) {
      const at = line.lastIndexOf(" ");
      if (at > 0 && !line.startsWith("#")) values.set(line.slice(0, at), Number(line.slice(at + 1)));
    }
    return new NodeMetrics(values);
  }

  /** Throws where the node does not say it: a bench must not take a name that is gone for a zero. */
  value(name: string): number {
    const value = this.#values.get(name);
    if (value === undefined) throw new Error(`the node has no metric ${name}`);
    return value;
  }

  /** Calls of the node to its store, so far, by operation, and bytes. */
  store(): StoreCounts {
    const requests = (operation: string) => this.value(`pico_store_request_duration_seconds_count{operation="${operation}"}`);
    return {
      creates: requests("create"),
      reads: requests("read"),
      others: requests("list") + requests("delete") + requests("size"),
      createdBytes: this.value('pico_store_bytes_total{operation="create"}'),
      readBytes: this.value('pico_store_bytes_total{operation="read"}'),
    };
  }
}

export interface StoreCounts {
  readonly creates: number;
  readonly reads: number;
  /** Lists, deletes and looks at sizes. */
  readonly others: number;
  readonly createdBytes: number;
  readonly readBytes: number;
}

export function storeCountsBetween(before: StoreCounts, after: StoreCounts): StoreCounts {
  return {
    creates: after.creates - before.creates,
    reads: after.reads - before.reads,
    others: after.others - before.others,
    createdBytes: after.createdBytes - before.createdBytes,
    readBytes: after.readBytes - before.readBytes,
  };
}

import { type AgentKey, rootOf } from "../../state/index.ts";

/** A cache by tenant and id, so that keys cannot collide. When it is full it is emptied. */
export class KeyedCache<T> {
  readonly #tenants = new Map<string, Map<string, T>>();
  readonly #capacity: number;
  #size = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get(tenant: string, id: string): T | undefined {
    return this.#tenants.get(tenant)?.get(id);
  }

  /** Says whether it was emptied. */
  set(tenant: string, id: string, value: T): boolean {
    const isNew = this.get(tenant, id) === undefined;
    const isFull = isNew && this.#size >= this.#capacity;
    if (isFull) this.clear();
    let values = this.#tenants.get(tenant);
    if (!values) {
      values = new Map();
      this.#tenants.set(tenant, values);
    }
    values.set(id, value);
    if (isNew) this.#size += 1;
    return isFull;
  }

  /** Forgets those of the trees of these agents; gives them. `agentOf`: the agent that an id names. */
  dropTrees(keys: readonly AgentKey[], agentOf: (id: string) => string): T[] {
    const dropped: T[] = [];
    for (const [tenant, ofTenant] of Map.groupBy(keys, (key) => key.tenant)) {
      const roots = new Set(ofTenant.map(({ agentId }) => rootOf(agentId)));
      const values = this.#tenants.get(tenant);
      for (const [id, value] of values ?? []) {
        if (!roots.has(rootOf(agentOf(id)))) continue;
        dropped.push(value);
        values?.delete(id);
      }
    }
    this.#size -= dropped.length;
    return dropped;
  }

  clear(): void {
    this.#tenants.clear();
    this.#size = 0;
  }
}

import { type AgentKey, rootOf } from "../../state/index.ts";

/** A cache by tenant and id, so that keys cannot collide. It is cleared when it is full. */
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

  set(tenant: string, id: string, value: T): void {
    const isNew = this.get(tenant, id) === undefined;
    if (isNew && this.#size >= this.#capacity) this.clear();
    let values = this.#tenants.get(tenant);
    if (!values) {
      values = new Map();
      this.#tenants.set(tenant, values);
    }
    values.set(id, value);
    if (isNew) this.#size += 1;
  }

  /** Drops the entries of these agents' trees. `agentOf` returns the agent of an id. */
  dropTrees(keys: readonly AgentKey[], agentOf: (id: string) => string): void {
    for (const [tenant, ofTenant] of Map.groupBy(keys, (key) => key.tenant)) {
      const roots = new Set(ofTenant.map(({ agentId }) => rootOf(agentId)));
      const values = this.#tenants.get(tenant);
      for (const id of values?.keys() ?? []) {
        if (roots.has(rootOf(agentOf(id))) && values?.delete(id)) this.#size -= 1;
      }
    }
  }

  clear(): void {
    this.#tenants.clear();
    this.#size = 0;
  }
}

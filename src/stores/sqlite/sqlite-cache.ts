/** A value with the text it was read from or written as. */
export interface Cached<T> {
  /** The generation in which it was last known to be what the file holds. */
  generation: number;
  text: string;
  value: T;
}

/**
 * Values by tenant and id, so that keys cannot be mixed up. Holds at most so many; past that it forgets all, which costs
 * one read each.
 */
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

  clear(): void {
    this.#tenants.clear();
    this.#size = 0;
  }
}

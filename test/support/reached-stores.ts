import type { Stores } from "../../src/index.ts";

/** The stores as one process of a test uses them: calls wait while it is frozen, and forever if it is never thawed. */
export class ReachedStores {
  /** The underlying stores. */
  readonly plain: Stores;
  readonly stores: Stores;
  #frozen: PromiseWithResolvers<void> | undefined;

  constructor(plain: Stores) {
    this.plain = plain;
    this.stores = new Proxy(plain, {
      get: (stores, name: keyof Stores) => {
        const member = stores[name];
        if (typeof member !== "function" || name === "onForeignWrite" || name === "onRolledBack") return member;
        const call = member as (...given: unknown[]) => Promise<unknown>;
        return async (...given: unknown[]): Promise<unknown> => {
          while (this.#frozen) await this.#frozen.promise;
          return await call.apply(stores, given);
        };
      },
    });
  }

  freeze(): void {
    this.#frozen ??= Promise.withResolvers<void>();
  }

  thaw(): void {
    this.#frozen?.resolve();
    this.#frozen = undefined;
  }
}

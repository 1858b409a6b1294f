import { AsyncResource } from "node:async_hooks";

/**
 * An async context: the values of all `AsyncLocalStorage` instances. Every turn captures one; an `AsyncResource` does so at a
 * hundredth of the cost of `AsyncLocalStorage.snapshot()`.
 */
export class AsyncContext {
  readonly #resource = new AsyncResource("troupe.context");

  /** Captures the context of the calling code. */
  static current(): AsyncContext {
    return new AsyncContext();
  }

  /** Runs the work in this context. */
  run<T>(work: () => T): T {
    return this.#resource.runInAsyncScope(work);
  }
}

/**
 * The context in which this package was imported, empty in an ordinary program. Work for several callers, or for none, runs in
 * it.
 */
export const processContext: AsyncContext = /* @__PURE__ */ AsyncContext.current();

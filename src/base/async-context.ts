import { AsyncResource } from "node:async_hooks";

/**
 * An async context: the values that `AsyncLocalStorage` instances have in it. An `AsyncResource` captures it at a hundredth of
 * the price of `AsyncLocalStorage.snapshot()`, and every turn has one.
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
 * The context in which this package was imported, empty in an ordinary program. Work that serves several callers, or none,
 * runs in it.
 */
export const processContext: AsyncContext = /* @__PURE__ */ AsyncContext.current();

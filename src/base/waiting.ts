/** The callers that currently wait for one key. */
export type Waiting<Value> = readonly PromiseWithResolvers<Value>[];

/**
 * Promises by key, for callers that wait until the key is settled.
 * Owns: the waiters. Does not own: when a key is settled.
 *
 * 1. Each waiter is settled once and then removed; a key without waiters uses no memory.
 * 2. A rejection whose waiter has not been awaited yet does not count as unhandled.
 */
export class Waiters<Key, Value = void> {
  readonly #waiting = new Map<Key, Set<PromiseWithResolvers<Value>>>();

  wait(key: Key): Promise<Value> {
    return this.join(key).promise;
  }

  /** The waiter itself, which `of()` will return. */
  join(key: Key): PromiseWithResolvers<Value> {
    const waiter = Promise.withResolvers<Value>();
    this.#waiting.set(key, (this.#waiting.get(key) ?? new Set()).add(waiter));
    return waiter;
  }

  has(key: Key): boolean {
    return this.#waiting.has(key);
  }

  keys(): Key[] {
    return [...this.#waiting.keys()];
  }

  /** The current waiters: looking up an answer takes time, and the answer may be out of date for later waiters. */
  of(key: Key): Waiting<Value> {
    return [...(this.#waiting.get(key) ?? [])];
  }

  /** Settles the waiters of a key, by default all of them. */
  resolve(key: Key, value: Value, waiting: Waiting<Value> = this.of(key)): void {
    for (const waiter of waiting) waiter.resolve(value);
    this.#remove(key, waiting);
  }

  reject(key: Key, reason: unknown): void {
    const waiting = this.of(key);
    for (const waiter of waiting) {
      waiter.promise.catch(() => undefined);
      waiter.reject(reason);
    }
    this.#remove(key, waiting);
  }

  /** Drops the waiters of a key; their promises never settle. */
  forget(key: Key): void {
    this.#waiting.delete(key);
  }

  #remove(key: Key, waiting: Waiting<Value>): void {
    const left = this.#waiting.get(key);
    for (const waiter of waiting) left?.delete(waiter);
    if (left?.size === 0) this.#waiting.delete(key);
  }
}

/**
 * A signal that follows other signals. `AbortSignal.any` would keep its listeners on long-lived sources until it is garbage
 * collected.
 */
export interface CombinedSignal {
  readonly signal: AbortSignal;
  /** Aborts only this signal, not its sources. */
  abort(reason?: unknown): void;
  /** Stops following the sources. Call it when the work has ended. */
  dispose(): void;
}

/** Combines signals: the result aborts with the first source that aborts, for the same reason. Undefined sources are ignored. */
export function combineSignals(sources: readonly (AbortSignal | undefined)[]): CombinedSignal {
  const controller = new AbortController();
  const followed: { readonly source: AbortSignal; readonly follow: () => void }[] = [];

  function dispose(): void {
    for (const { source, follow } of followed.splice(0)) source.removeEventListener("abort", follow);
  }

  function abort(reason?: unknown): void {
    dispose();
    controller.abort(reason);
  }

  for (const source of sources) {
    if (source === undefined) continue;
    if (source.aborted) {
      abort(source.reason);
      break;
    }
    const follow = () => abort(source.reason);
    source.addEventListener("abort", follow, { once: true });
    followed.push({ source, follow });
  }
  return { signal: controller.signal, abort, dispose };
}

/**
 * Settles like the promise, or rejects with the signal's reason if the signal aborts first. The work behind the promise then
 * continues, and its result or rejection is ignored.
 */
export function abortable<T>(promise: PromiseLike<T>, signal: AbortSignal | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal === undefined) {
      promise.then(resolve, reject);
      return;
    }
    const onAbort = (): void => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    promise.then(
      (value) => {
        signal.removeEventListener("abort", onAbort);
        resolve(value);
      },
      (error: unknown) => {
        signal.removeEventListener("abort", onAbort);
        reject(error);
      },
    );
  });
}

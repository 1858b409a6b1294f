/** A promise that is settled from outside. Only the first settlement counts. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly isSettled: boolean;
  resolve(value: T): void;
  reject(reason: unknown): void;
}

export function createDeferred<T = void>(): Deferred<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  let isSettled = false;
  return {
    promise,
    get isSettled() {
      return isSettled;
    },
    resolve(value) {
      isSettled = true;
      resolve(value);
    },
    reject(reason) {
      isSettled = true;
      reject(reason);
    },
  };
}

/** Those who wait for one key at some moment. */
export type Waiting<Value> = readonly Deferred<Value>[];

/**
 * Promises by key, for those who wait until something is said about the key.
 * Owns: who waits. Does not own: when what they wait for happens.
 *
 * 1. Each waiter is settled once and is forgotten then; a key for which nobody waits takes no room.
 * 2. A rejection that its waiter does not look at yet does not count as unhandled.
 */
export class Waiters<Key, Value = void> {
  readonly #waiting = new Map<Key, Set<Deferred<Value>>>();

  wait(key: Key): Promise<Value> {
    const waiter = createDeferred<Value>();
    this.#waiting.set(key, (this.#waiting.get(key) ?? new Set()).add(waiter));
    return waiter.promise;
  }

  has(key: Key): boolean {
    return this.#waiting.has(key);
  }

  keys(): Key[] {
    return [...this.#waiting.keys()];
  }

  /** Those who wait now: an answer that is looked up takes time, and may be out of date for those who come meanwhile. */
  of(key: Key): Waiting<Value> {
    return [...(this.#waiting.get(key) ?? [])];
  }

  /** Settles those who wait for the key, by default all of them. */
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

  /** Drops those who wait for the key; their promises never settle. */
  forget(key: Key): void {
    this.#waiting.delete(key);
  }

  #remove(key: Key, waiting: Waiting<Value>): void {
    const left = this.#waiting.get(key);
    for (const waiter of waiting) left?.delete(waiter);
    if (left?.size === 0) this.#waiting.delete(key);
  }
}

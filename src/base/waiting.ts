import { AsyncContext } from "./async-context.ts";

/** A promise that is settled from outside. Only the first settlement counts. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly isSettled: boolean;
  resolve(value: T): void;
  reject(reason: unknown): void;
}

class Settleable<T> implements Deferred<T> {
  readonly promise: Promise<T>;
  isSettled = false;
  #resolve!: (value: T) => void;
  #reject!: (reason: unknown) => void;

  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  resolve(value: T): void {
    this.isSettled = true;
    this.#resolve(value);
  }

  reject(reason: unknown): void {
    this.isSettled = true;
    this.#reject(reason);
  }
}

export function createDeferred<T = void>(): Deferred<T> {
  return new Settleable<T>();
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
    return this.join(key).promise;
  }

  /** The waiter itself, as `of()` gives it later. */
  join(key: Key): Deferred<Value> {
    const waiter = createDeferred<Value>();
    this.#waiting.set(key, (this.#waiting.get(key) ?? new Set()).add(waiter));
    return waiter;
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

/** What code of the runtime needs of a signal. An `AbortSignal` is one; `realSignal()` gives one for user code. */
export interface LightSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void, options?: { readonly once: true }): void;
  removeEventListener(type: "abort", listener: () => void): void;
  throwIfAborted(): void;
}

/**
 * An `AbortController` and its signal at a tenth of the price, since every effect and every call has one and hardly any is looked
 * at. Listeners are called at most once, in the order in which they came.
 */
export class LightController implements LightSignal {
  aborted = false;
  reason: unknown;
  #listeners: (() => void)[] = [];
  #real: { readonly controller: AbortController; readonly context: AsyncContext } | undefined;

  get signal(): LightSignal {
    return this;
  }

  addEventListener(_type: "abort", listener: () => void): void {
    if (!this.aborted) this.#listeners.push(listener);
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    const place = this.#listeners.lastIndexOf(listener);
    if (place >= 0) this.#listeners.splice(place, 1);
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason;
  }

  /** Only the first one counts. `reason`: default an `AbortError`, as of an `AbortController`. */
  abort(reason: unknown = new DOMException("This operation was aborted", "AbortError")): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    // User code listens there, and hears of it first, as it came first.
    this.#real?.context.run(() => this.#real?.controller.abort(reason));
    for (let next = this.#listeners.shift(); next; next = this.#listeners.shift()) next();
  }

  /** The same at each reading. Its listeners run in the async context of the first reading, not in that of who aborts. */
  get real(): AbortSignal {
    if (this.#real === undefined) {
      this.#real = { controller: new AbortController(), context: AsyncContext.current() };
      if (this.aborted) this.#real.controller.abort(this.reason);
    }
    return this.#real.controller.signal;
  }
}

/** The signal as user code and other libraries get it. */
export function realSignal(signal: LightSignal): AbortSignal {
  return signal instanceof LightController ? signal.real : (signal as AbortSignal);
}

/** A signal that follows others. `AbortSignal.any` would keep its listeners on long-lived sources until it is collected. */
export interface CombinedSignal {
  readonly signal: LightSignal;
  /** Aborts this signal alone, not its sources. */
  abort(reason?: unknown): void;
  /** Stops following the sources. Call it when the work is over. */
  dispose(): void;
}

/** Combines signals: the result aborts with the first of them, for the same reason. Undefined ones are left out. */
export function combineSignals(sources: readonly (LightSignal | undefined)[]): CombinedSignal {
  const controller = new LightController();
  const followed: { readonly source: LightSignal; readonly follow: () => void }[] = [];

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
 * Settles as the promise does, or rejects with the signal's reason when the signal aborts first. The work behind the
 * promise goes on then, and its result or rejection is ignored.
 */
export function abortable<T>(promise: PromiseLike<T>, signal: LightSignal | undefined): Promise<T> {
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

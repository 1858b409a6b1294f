/** A promise that is settled from outside. The first settlement counts, later ones do nothing. */
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

import { createDeferred } from "./deferred.ts";

/** A signal that follows others. `AbortSignal.any` would do, but holds on to long-lived sources until they are collected. */
export interface CombinedSignal {
  readonly signal: AbortSignal;
  /** Aborts this signal alone, not its sources. */
  abort(reason?: unknown): void;
  /** Lets go of the sources. Call it when the work is over; the signal then changes no more by them. */
  dispose(): void;
}

/** Combines signals: the result aborts with the first of them, for the same reason. Those that are undefined are left out. */
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
 * Waits for a promise, but no longer than until the signal aborts; then it rejects with the signal's reason. The work
 * behind the promise is not stopped by this; how it ends later is ignored, a rejection too.
 */
export async function abortable<T>(promise: PromiseLike<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return await promise;
  const aborted = createDeferred<never>();
  const onAbort = () => aborted.reject(signal.reason);
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([aborted.promise, promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

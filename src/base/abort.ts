import { createDeferred } from "./deferred.ts";

/** A signal that follows others. `AbortSignal.any` would keep its listeners on long-lived sources until it is collected. */
export interface CombinedSignal {
  readonly signal: AbortSignal;
  /** Aborts this signal alone, not its sources. */
  abort(reason?: unknown): void;
  /** Stops following the sources. Call it when the work is over. */
  dispose(): void;
}

/** Combines signals: the result aborts with the first of them, for the same reason. Undefined ones are left out. */
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
 * Settles as the promise does, or rejects with the signal's reason when the signal aborts first. The work behind the
 * promise goes on then, and its result or rejection is ignored.
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

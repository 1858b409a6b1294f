import type { Host } from "./host.ts";

/**
 * Waits until an absolute time, as far away as it is now: a clock that is set meanwhile moves nothing. Rejects when the
 * signal is aborted.
 */
export async function until(host: Host, at: number, signal: AbortSignal): Promise<void> {
  const left = at - host.clock.now();
  if (left > 0) await host.clock.sleep(left, signal);
}

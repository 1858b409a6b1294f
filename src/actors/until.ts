import { createDeferred } from "../base/index.ts";
import type { Host } from "./host.ts";

/** Waits for an absolute time on the host's clock. Rejects when the signal is aborted. */
export async function until(host: Host, at: number, signal: AbortSignal): Promise<void> {
  if (at <= host.clock.now()) return;
  const elapsed = createDeferred();
  const cancel = host.clock.setTimer(at, () => elapsed.resolve());
  const stop = (): void => elapsed.reject(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  try {
    await elapsed.promise;
  } finally {
    cancel();
    signal.removeEventListener("abort", stop);
  }
}

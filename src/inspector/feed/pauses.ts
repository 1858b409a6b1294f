import { setImmediate } from "node:timers/promises";

/** Milliseconds of work after which the loop yields to other work of the process. */
const PAUSE_AFTER_MS = 8;

/** Returns a function for long loops: awaited after each step, it yields to other work of the process every 8 ms. */
export function pauses(): () => Promise<void> {
  let until = performance.now() + PAUSE_AFTER_MS;
  return async () => {
    if (performance.now() < until) return;
    await setImmediate();
    until = performance.now() + PAUSE_AFTER_MS;
  };
}

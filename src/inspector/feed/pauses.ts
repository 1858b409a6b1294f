import { setImmediate } from "node:timers/promises";

/** Milliseconds of work after which the other work of the process goes first. */
const PAUSE_AFTER_MS = 8;

/** For a long loop: awaited after each step, it lets the other work of the process go first every 8 ms. */
export function pauses(): () => Promise<void> {
  let until = performance.now() + PAUSE_AFTER_MS;
  return async () => {
    if (performance.now() < until) return;
    await setImmediate();
    until = performance.now() + PAUSE_AFTER_MS;
  };
}

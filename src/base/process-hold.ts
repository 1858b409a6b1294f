/** Longest interval that a timer takes, in milliseconds. */
const LONGEST_MS = 2 ** 31 - 1;

let holders = 0;
let handle: NodeJS.Timeout | undefined;

/**
 * Keeps this process from ending by itself until the returned function is called. Clocks hold nothing open, so work that
 * only waits for a time (the next attempt of a call) would otherwise end with the process in the middle.
 */
export function holdProcess(): () => void {
  holders += 1;
  handle ??= setInterval(() => undefined, LONGEST_MS);
  let isHeld = true;
  return () => {
    if (!isHeld) return;
    isHeld = false;
    holders -= 1;
    if (holders > 0) return;
    clearInterval(handle);
    handle = undefined;
  };
}

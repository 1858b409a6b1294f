import { describeValue } from "./describe-value.ts";

/**
 * Wraps code that only watches, so that it cannot harm what it watches: what it throws, and what its promise rejects with, goes
 * to `tell`, and it is called again all the same.
 * @param what Names the code in the warning: "an observer of runtime.subscribe()".
 * @param tell Default: a process warning, for the first fault alone.
 */
export function harmless<Parts extends readonly unknown[]>(
  what: string,
  code: (...parts: Parts) => unknown,
  tell: (fault: unknown) => void = warningOnce(what),
): (...parts: Parts) => void {
  return (...parts) => {
    try {
      const given = code(...parts);
      if (given instanceof Promise) given.catch(tell);
    } catch (fault) {
      tell(fault);
    }
  };
}

function warningOnce(what: string): (fault: unknown) => void {
  let isTold = false;
  return (fault) => {
    if (isTold) return;
    isTold = true;
    const why = fault instanceof Error ? fault.message : describeValue(fault);
    process.emitWarning(`${what} failed; whatever it watches goes on: ${why}`, { code: "TROUPE_OBSERVER" });
  };
}

import { describeValue } from "../base/index.ts";

/**
 * Code that only watches, so that it cannot harm what it watches: what it throws, and what a promise of its rejects with, is
 * warned of once. It is called again all the same.
 * @param what Names it for the warning: "an observer of runtime.subscribe()".
 */
export function harmless<Parts extends readonly unknown[]>(
  what: string,
  code: (...parts: Parts) => unknown,
): (...parts: Parts) => void {
  let isTold = false;
  const tell = (error: unknown): void => {
    if (isTold) return;
    isTold = true;
    const why = error instanceof Error ? error.message : describeValue(error);
    process.emitWarning(`${what} failed; whatever it watches goes on: ${why}`, { code: "TROUPE_OBSERVER" });
  };
  return (...parts) => {
    try {
      const given = code(...parts);
      if (given instanceof Promise) given.catch(tell);
    } catch (error) {
      tell(error);
    }
  };
}

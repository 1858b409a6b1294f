import { constants, createContext, Script } from "node:vm";

/** Longest time for which a check blocks the event loop, in milliseconds. */
const LIMIT_MS = 30;
const MOST_TRIES = 5;

/** The check exceeded its time limit. The message may be shown to a model. */
export class TooSlowError extends Error {
  constructor() {
    super("checking it takes too long: send fewer or shorter values");
  }
}

const context = createContext(constants.DONT_CONTEXTIFY) as { work?: () => void };
/** Of this thread; in Node 22 of the whole process. */
const cpuUsage =
  (process as { readonly threadCpuUsage?: typeof process.cpuUsage }).threadCpuUsage?.bind(process) ??
  process.cpuUsage.bind(process);
const script = new Script("work()");

/**
 * Runs synchronous work that a hostile schema or value may make endless: V8 stops it at the time limit, even inside a regular expression.
 * The work must not leave half-done changes. If the machine is so busy that the work hardly ran, it is tried again. Throws
 * `TooSlowError`.
 */
export function withinLimit<T>(work: () => T): T {
  for (let attempt = 1; ; attempt += 1) {
    const before = cpuUsage();
    let result: { readonly value: T } | undefined;
    context.work = () => {
      result = { value: work() };
    };
    try {
      script.runInContext(context, { timeout: LIMIT_MS });
    } catch (error) {
      if (!isTimeout(error)) throw error;
      const { user, system } = cpuUsage(before);
      const isStarved = (user + system) / 1_000 < LIMIT_MS / 2;
      if (!isStarved || attempt === MOST_TRIES) throw new TooSlowError();
    } finally {
      delete context.work;
    }
    if (result !== undefined) return result.value;
  }
}

function isTimeout(error: unknown): boolean {
  // The error belongs to the other context, so it is not an instance of this context's `Error`.
  return (
    typeof error === "object" && error !== null && "code" in error && error.code === "ERR_SCRIPT_EXECUTION_TIMEOUT"
  );
}

/** Yields to other tasks between two checks. */
export function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

import { inspect } from "node:util";
import { readableThrown } from "../base/index.ts";

/** By error: the user code that has thrown it, in words. */
const sources = new WeakMap<Error, string>();

/** Notes which code has thrown the error, and gives it back. */
export function thrownBy(source: string, error: unknown): unknown {
  if (error instanceof Error) sources.set(error, source);
  return error;
}

/** The user code that has thrown the error; undefined where that is not known. */
export function sourceOf(error: unknown): string | undefined {
  return error instanceof Error ? sources.get(error) : undefined;
}

/** Runs user code; its error is noted as thrown by it. */
export async function userCode<T>(source: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw thrownBy(source, error);
  }
}

/**
 * Writes an error of user code to standard error, with its stack and causes, where the environment has `TROUPE_DEBUG=1`. Stored is
 * only its message.
 */
export function debugError(source: string, thrown: unknown, redact: (text: string) => string): void {
  if (process.env["TROUPE_DEBUG"] !== "1") return;
  process.stderr.write(`troupe: ${source} failed: ${redact(inspect(readableThrown(thrown)))}\n`);
}

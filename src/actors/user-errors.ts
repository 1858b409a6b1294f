import { inspect } from "node:util";
import { readableThrown } from "../base/index.ts";

/** By error: a description of the user code that threw it. */
const sources = new WeakMap<Error, string>();

/** Records which code threw the error, and returns the error. */
export function thrownBy(source: string, error: unknown): unknown {
  if (error instanceof Error) sources.set(error, source);
  return error;
}

/** The user code that threw the error; `undefined` if unknown. */
export function sourceOf(error: unknown): string | undefined {
  return error instanceof Error ? sources.get(error) : undefined;
}

/** Runs user code and records it as the source of its error. */
export async function userCode<T>(source: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw thrownBy(source, error);
  }
}

/**
 * Writes an error of user code to standard error, with its stack and causes, if the environment has `TROUPE_DEBUG=1`. Only the
 * message is stored.
 */
export function debugError(source: string, thrown: unknown, redact: (text: string) => string): void {
  if (process.env["TROUPE_DEBUG"] !== "1") return;
  process.stderr.write(`troupe: ${source} failed: ${redact(inspect(readableThrown(thrown)))}\n`);
}

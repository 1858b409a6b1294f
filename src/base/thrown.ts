import { types } from "node:util";
import { describeValue } from "./describe-value.ts";

const unreadable = "an unreadable value was thrown";
const withoutWords = "an error without a message";

/** The fields of a caught error that this code reads. */
const readFields = ["name", "message", "code", "retryable", "details"] as const;

/**
 * Makes a value thrown by foreign code safe to read any number of times: it may be a text, a proxy, or an error whose getters
 * throw. Ordinary errors and primitive values are returned unchanged, so that the class of an error is kept; all other values
 * become a plain error. Never throws.
 */
export function readableThrown(thrown: unknown): unknown {
  if ((typeof thrown !== "object" && typeof thrown !== "function") || thrown === null) return thrown;
  try {
    if (types.isProxy(thrown)) throw new TypeError("a proxy may answer differently each time");
    if (!(thrown instanceof Error)) return errorOf("thrown", wordsOfThrown(thrown));
    const { name, message } = thrown;
    if (typeof name === "string" && typeof message === "string" && hasPlainFields(thrown)) return thrown;
    return errorOf(textOr(name, "Error"), textOr(message, withoutWords));
  } catch {
    return errorOf("thrown", unreadable);
  }
}

/** The message of a thrown error, or a description of any other thrown value. Never throws. */
export function wordsOfThrown(thrown: unknown): string {
  try {
    if (thrown instanceof Error) return textOr(thrown.message, withoutWords);
    if (typeof thrown === "string") return thrown;
    if (typeof thrown !== "object" || thrown === null) return describeValue(thrown);
    return `${describeValue(thrown)} was thrown, not an error`;
  } catch {
    return unreadable;
  }
}

function errorOf(name: string, message: string): Error {
  const error = new Error(message);
  error.name = name;
  return error;
}

/** Whether each field can be read without an error and none is an own accessor. */
function hasPlainFields(error: Error): boolean {
  return readFields.every((field) => {
    const own = Object.getOwnPropertyDescriptor(error, field);
    if (own === undefined) Reflect.get(error, field);
    return own === undefined || "value" in own;
  });
}

function textOr(value: unknown, otherwise: string): string {
  return typeof value === "string" ? value : otherwise;
}

/**
 * Wraps a user's observer so that its errors do no harm: `tell` is called with the thrown error or the rejection. The observer is
 * called again all the same.
 * @param what Name of the observer in the warning: "an observer of runtime.subscribe()".
 * @param tell Default: emits a process warning for the first error.
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
    process.emitWarning(`${what} failed; the observed work continues: ${wordsOfThrown(fault)}`, {
      code: "TROUPE_OBSERVER",
    });
  };
}

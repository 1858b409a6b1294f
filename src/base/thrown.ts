import { types } from "node:util";
import { describeValue } from "./describe-value.ts";

const unreadable = "something was thrown that cannot be read";
const withoutWords = "an error without words";

/** Fields that are read of an error after it was caught. */
const readFields = ["name", "message", "code", "retryable", "details"] as const;

/**
 * What foreign code threw, as something that can be read any number of times: people throw texts, proxies, errors whose message
 * throws when it is read. An ordinary error, and whatever is no object, is given back as it is, so that its class still tells
 * what to do with it; of anything else an error in plain words is made. Never throws.
 */
export function readableThrown(thrown: unknown): unknown {
  if ((typeof thrown !== "object" && typeof thrown !== "function") || thrown === null) return thrown;
  try {
    if (types.isProxy(thrown)) throw new TypeError("a proxy may answer otherwise each time");
    if (!(thrown instanceof Error)) return errorOf("thrown", wordsOfThrown(thrown));
    const { name, message } = thrown;
    if (typeof name === "string" && typeof message === "string" && hasPlainFields(thrown)) return thrown;
    return errorOf(textOr(name, "Error"), textOr(message, withoutWords));
  } catch {
    return errorOf("thrown", unreadable);
  }
}

/** What was thrown, in words. Never throws. */
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

/** Whether each field can be read, and what is its own is a value and no accessor. Throws what a class throws when it is read. */
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

import type { z } from "zod";
import {
  type DeepReadonly,
  deepFreeze,
  describeValue,
  type JsonBounds,
  type Path,
  renderPath,
  toJson,
} from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { Json, JsonObject } from "./json.ts";

/** A copy of a foreign value, or its first mistake with the path, as one sentence. */
export type Taken<T> =
  | { readonly ok: true; readonly value: DeepReadonly<T> }
  | { readonly ok: false; readonly problem: string };

/**
 * Parses a foreign value (of a caller, a hook, a tool, a model adapter) by its schema before it is journalled. The result is a frozen
 * copy of plain JSON, bounded in depth and size; the caller has the only reference to it. Never throws.
 */
export function taken<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  bounds: JsonBounds = {},
): Taken<z.output<Schema>> {
  const copied = toJson(value, bounds);
  if (!copied.ok) return { ok: false, problem: `${renderPath(copied.issue.path)}: ${copied.issue.message}` };
  const parsed = schema.safeParse(copied.json);
  if (parsed.success) return { ok: true, value: deepFreeze(parsed.data) };
  const { path, message } = deepest(parsed.error.issues, []);
  return { ok: false, problem: `${renderPath(path)}: ${message}` };
}

/** A union only reports that no member fits, so the member that fits deepest is assumed to be the intended one. */
function deepest(issues: readonly z.core.$ZodIssue[], above: Path): { readonly path: Path; readonly message: string } {
  const [issue] = issues;
  if (!issue) return { path: above, message: "does not fit its schema" };
  const own = issue.path.map((part) => (typeof part === "number" ? part : String(part)));
  const path = [...above, ...own];
  const kinds = issue.code === "invalid_union" ? issue.errors.map((errors) => deepest(errors, path)) : [];
  const [best] = kinds.toSorted((one, other) => other.path.length - one.path.length);
  return best && best.path.length > path.length ? best : { path, message: issue.message };
}

/**
 * Like `taken`, but throws for an invalid value.
 * @param what Describes the value in the message: "executeTurn({ trace })".
 * @throws InvalidInputError
 */
export function take<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  what: string,
  bounds: JsonBounds = {},
): DeepReadonly<z.output<Schema>> {
  const result = taken(schema, value, bounds);
  if (result.ok) return result.value;
  throw new InvalidInputError(`${what} cannot be taken: ${result.problem}`);
}

/** Longest content of a message in total, in characters; images as `data:` URLs count. */
export const LONGEST_CONTENT = 2 ** 26;

/** Longest text from foreign code, in UTF-16 units. */
export const LONGEST_TEXT = 2 ** 24;

/**
 * A text from foreign code.
 * @param what Describes the source in the message: "instructions() of agent \"clerk\"".
 * @throws InvalidInputError for other values, and for a text of more than 16 Mi characters.
 */
export function takeText(value: unknown, what: string): string {
  if (typeof value === "string" && value.length <= LONGEST_TEXT) return value;
  const found = typeof value === "string" ? `a text of ${value.length} characters` : describeValue(value);
  throw new InvalidInputError(`${what} is ${found}; it must be a text of at most ${LONGEST_TEXT} characters`);
}

/**
 * Foreign plain JSON of any form, as a frozen, bounded copy.
 * @throws InvalidInputError
 */
export function takeJson(value: unknown, what: string, bounds: JsonBounds = {}): Json {
  const copied = toJson(value, bounds);
  if (!copied.ok) {
    throw new InvalidInputError(`${what} cannot be taken: ${renderPath(copied.issue.path)}: ${copied.issue.message}`);
  }
  deepFreeze<unknown>(copied.json);
  return copied.json;
}

/**
 * Like `takeJson`, for an object.
 * @throws InvalidInputError
 */
export function takeObject(value: unknown, what: string, bounds: JsonBounds = {}): JsonObject {
  const json = takeJson(value, what, bounds);
  if (typeof json === "object" && json !== null && !Array.isArray(json)) return json as JsonObject;
  throw new InvalidInputError(`${what} is ${describeValue(value)}; it takes an object of JSON values`);
}

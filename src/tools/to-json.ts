import { maxJsonDepth } from "../base/index.ts";
import type { Json } from "../state/index.ts";
import { type Issue, type Path, renderPath } from "./issues.ts";

export type ToJson = { readonly ok: true; readonly json: Json } | { readonly ok: false; readonly issue: Issue };

/**
 * A copy that is plain JSON, or the first place that is not. Members that are `undefined` are left out, as JSON does;
 * dates, maps, class instances, functions, bigints and numbers that are not finite are refused.
 */
export function toJson(value: unknown): ToJson {
  try {
    return { ok: true, json: copy(value, []) };
  } catch (error) {
    if (error instanceof NotJson) return { ok: false, issue: error.issue };
    throw error;
  }
}

/** A copy of what is JSON already: user code may change its copy, never what is journalled. */
export function copyOfJson(json: Json): Json {
  return copy(json, []);
}

class NotJson extends Error {
  readonly issue: Issue;

  constructor(path: Path, message: string) {
    super(`${renderPath(path)}: ${message}`);
    this.issue = { path: [...path], message, expected: "a JSON value" };
  }
}

/** `path` is one array for the whole walk: a large value must not cost an array per member. */
function copy(value: unknown, path: (string | number)[]): Json {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") {
    if (Number.isFinite(value)) return value;
    throw new NotJson(path, `${value} has no JSON form`);
  }
  if (typeof value !== "object") throw new NotJson(path, `a value of type ${typeof value} has no JSON form`);
  if (path.length > maxJsonDepth) throw new NotJson(path.slice(0, 5), `more than ${maxJsonDepth} levels, or a cycle`);
  if (Array.isArray(value)) return Array.from(value, (member: unknown, index) => copyMember(member, index, path));
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    throw new NotJson(path, `an object of class ${value.constructor?.name ?? "unknown"} has no JSON form`);
  }
  const members: Record<string, Json> = {};
  for (const [key, member] of Object.entries(value)) {
    if (key === "__proto__") throw new NotJson([...path, key], "this key is not allowed");
    if (member !== undefined) members[key] = copyMember(member, key, path);
  }
  return members;
}

function copyMember(member: unknown, key: string | number, path: (string | number)[]): Json {
  path.push(key);
  const json = copy(member, path);
  path.pop();
  return json;
}

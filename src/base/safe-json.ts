import { InvalidInputError } from "../errors/index.ts";

/** Nesting that parsed and hashed values may have: the outermost array or object is at depth 1. */
export const maxJsonDepth = 200;

export interface ParseJsonOptions {
  /** Size limit in UTF-8 bytes. Default 16 MiB. */
  readonly maxBytes?: number;
  /** Default 200. */
  readonly maxDepth?: number;
  /** What is parsed, for messages: "the request body". Default "the text". */
  readonly what?: string;
}

const unsafeKeys: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/** An array or object on the way down, with the way to it. */
interface Visit {
  readonly container: object;
  readonly depth: number;
  readonly key: string;
  readonly parent: Visit | undefined;
}

/**
 * Parses JSON that somebody else wrote: bounded in size and depth, and without keys that reach an object's prototype
 * (guarantee S9). The message of an error tells the place, never the content.
 * @throws InvalidInputError
 */
export function parseJson(text: string, options: ParseJsonOptions = {}): unknown {
  const { maxBytes = 16 * 1024 * 1024, maxDepth = maxJsonDepth, what = "the text" } = options;
  // A UTF-16 unit is never less than one byte and never more than three.
  if (text.length > maxBytes || (text.length * 3 > maxBytes && Buffer.byteLength(text) > maxBytes)) {
    throw new InvalidInputError(`${what} is larger than the permitted ${maxBytes} bytes`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    // The engine's own message quotes the text, which may hold a secret.
    const position = error instanceof Error ? /position \d+/.exec(error.message) : null;
    throw new InvalidInputError(`${what} is not valid JSON${position === null ? "" : ` (at ${position[0]})`}`);
  }
  if (typeof value === "object" && value !== null) inspect(value, maxDepth, what);
  return value;
}

/** Goes through all containers with a stack of its own: depth is what is being checked here. */
function inspect(root: object, maxDepth: number, what: string): void {
  const stack: Visit[] = [{ container: root, depth: 1, key: "$", parent: undefined }];
  for (let visit = stack.pop(); visit !== undefined; visit = stack.pop()) {
    if (visit.depth > maxDepth) {
      throw new InvalidInputError(`${what} is nested deeper than the permitted ${maxDepth} levels`);
    }
    const isArray = Array.isArray(visit.container);
    for (const [key, child] of Object.entries(visit.container)) {
      if (!isArray && unsafeKeys.has(key)) {
        throw new InvalidInputError(`${what} has the key "${key}" at ${pathOf(visit)}; this key is not permitted`);
      }
      if (typeof child !== "object" || child === null) continue;
      stack.push({ container: child, depth: visit.depth + 1, key: isArray ? `[${key}]` : `.${key}`, parent: visit });
    }
  }
}

function pathOf(visit: Visit): string {
  const keys: string[] = [];
  for (let at: Visit | undefined = visit; at !== undefined; at = at.parent) keys.push(at.key);
  return keys.toReversed().join("");
}

/**
 * JSON with sorted keys and no spaces: equal values give equal texts, whatever the order in which they were built. For
 * hashes. Members that are undefined are left out, as JSON does.
 * @throws InvalidInputError for what is no JSON value (dates, functions, NaN, cycles) and below depth 200.
 */
export function stableStringify(value: unknown): string {
  return stringifyAt(value, 1);
}

function stringifyAt(value: unknown, depth: number): string {
  if (value === null || typeof value === "boolean" || typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number" && Number.isFinite(value)) return JSON.stringify(value);
  if (typeof value !== "object") throw new InvalidInputError(`${describe(value)} is not a JSON value`);
  if (depth > maxJsonDepth) {
    throw new InvalidInputError(`a value is nested deeper than ${maxJsonDepth} levels, or contains itself`);
  }
  if (Array.isArray(value)) return `[${value.map((item) => stringifyAt(item, depth + 1)).join(",")}]`;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    throw new InvalidInputError(`a ${value.constructor.name} is not a JSON value; a plain object is needed`);
  }
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([key, member]) => `${JSON.stringify(key)}:${stringifyAt(member, depth + 1)}`);
  return `{${members.join(",")}}`;
}

function describe(value: unknown): string {
  return typeof value === "number" ? String(value) : typeof value;
}

import { InvalidInputError } from "../errors/index.ts";
import { describeValue } from "./describe-value.ts";
import { wordsOfThrown } from "./thrown.ts";

/** Levels of arrays and objects that a value may have by default. */
export const maxJsonDepth = 200;

/** Any JSON value. All values in the journal are JSON. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

export type Path = readonly (string | number)[];

/** The first path in a value that is not plain JSON. */
export interface NotJson {
  readonly path: Path;
  readonly message: string;
}

export type ToJson = { readonly ok: true; readonly json: Json } | { readonly ok: false; readonly issue: NotJson };

export interface JsonBounds {
  /** Levels of arrays and objects. Default 200. */
  readonly maxDepth?: number | undefined;
  /** Characters of all texts and keys together; every other value counts as one. Default 16 Mi (2^24). */
  readonly maxSize?: number | undefined;
}

/**
 * Copies a value as plain JSON, or returns the first path that is not plain JSON. Members that are `undefined` are left out, as
 * in JSON; dates, maps, class instances, functions, bigints and numbers that are not finite are refused, and so are accessors and
 * proxies that throw.
 */
export function toJson(value: unknown, bounds: JsonBounds = {}): ToJson {
  const copier = new Copier(bounds);
  try {
    return { ok: true, json: copier.copy(value) };
  } catch (error) {
    return { ok: false, issue: copier.issueOf(error) };
  }
}

/** A copy for user code, which may change it without changing the journalled value. */
export function copyOfJson(json: Json): Json {
  return new Copier({ maxSize: Number.POSITIVE_INFINITY }).copy(json);
}

/** `items[0].name`; the root is `(root)`. */
export function renderPath(path: Path): string {
  if (path.length === 0) return "(root)";
  const text = path
    .map((part, index) => {
      if (typeof part === "number") return `[${part}]`;
      if (!/^[\w$-]{1,64}$/.test(part)) return `[${JSON.stringify(part.slice(0, 64))}]`;
      return index === 0 ? part : `.${part}`;
    })
    .join("");
  return text.length > longestPath ? `${text.slice(0, longestPath)}…` : text;
}

const longestPath = 300;
const defaultSize = 2 ** 24;

/** Copies one value. All levels share one array for the path, because an array per member would be slow for large values. */
class Copier {
  readonly #path: (string | number)[] = [];
  readonly #maxDepth: number;
  readonly #maxSize: number;
  #room: number;

  constructor({ maxDepth = maxJsonDepth, maxSize = defaultSize }: JsonBounds) {
    this.#maxDepth = maxDepth;
    this.#maxSize = maxSize;
    this.#room = maxSize;
  }

  copy(value: unknown): Json {
    this.#take(typeof value === "string" ? value.length : 1);
    if (value === null || typeof value === "string" || typeof value === "boolean") return value;
    if (typeof value === "number" && Number.isFinite(value)) return value;
    if (typeof value !== "object") throw new InvalidInputError(`${describeValue(value)} has no JSON form`);
    if (this.#path.length >= this.#maxDepth) {
      this.#path.length = Math.min(this.#path.length, 5);
      throw new InvalidInputError(`more than ${this.#maxDepth} levels, or a cycle`);
    }
    if (Array.isArray(value)) return this.#list(value);
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype === Object.prototype || prototype === null) return this.#record(value);
    throw new InvalidInputError(`an object of class ${value.constructor?.name ?? "unknown"} has no JSON form`);
  }

  issueOf(error: unknown): NotJson {
    const path = [...this.#path];
    if (error instanceof InvalidInputError) return { path, message: error.message };
    return { path, message: `cannot be read: ${wordsOfThrown(error)}` };
  }

  #list(list: readonly unknown[]): Json {
    // An array may have a length of billions without having a member.
    this.#take(list.length);
    return Array.from(list, (member, index) => {
      this.#path.push(index);
      const json = this.copy(member);
      this.#path.pop();
      return json;
    });
  }

  #record(record: object): Json {
    const members: Record<string, Json> = {};
    for (const key of Object.keys(record)) {
      this.#path.push(key);
      this.#take(key.length);
      if (key === "__proto__") throw new InvalidInputError("this key is not allowed");
      const member: unknown = (record as Record<string, unknown>)[key];
      if (member !== undefined) members[key] = this.copy(member);
      this.#path.pop();
    }
    return members;
  }

  #take(size: number): void {
    this.#room -= size;
    if (this.#room < 0) throw new InvalidInputError(`it is larger than the permitted ${this.#maxSize} characters`);
  }
}

export interface ParseJsonOptions {
  /** Size limit in UTF-8 bytes. Default 16 MiB. */
  readonly maxBytes?: number;
  /** Default 200. */
  readonly maxDepth?: number;
  /** What is parsed, for messages: "the request body". Default "the text". */
  readonly what?: string;
}

/**
 * Whether a JSON text contains more than `most` values: members, items, and the containers themselves. Scans only the text, so
 * that a text of millions of empty lists is refused before it is parsed. For invalid JSON the result is meaningless.
 */
export function hasMoreValues(text: string, most: number): boolean {
  // A value is the root, the first value in a container, or follows a comma.
  let values = 1;
  for (let at = 0; at < text.length; at += 1) {
    const sign = text.charCodeAt(at);
    if (sign === quote) at = endOfString(text, at);
    else if (sign === comma || sign === openingBracket || sign === openingBrace) values += 1;
    if (values > most) return true;
  }
  return false;
}

const [quote, comma, openingBracket, openingBrace, backslash] = [0x22, 0x2c, 0x5b, 0x7b, 0x5c];

/** The index of the quote that ends a string; the length of the text if the string does not end. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let first = end;
    while (text.charCodeAt(first - 1) === backslash) first -= 1;
    if ((end - first) % 2 === 0) return end;
  }
  return text.length;
}

const unsafeKeys: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/** An array or object that is still to be checked, with its path. */
interface Visit {
  readonly container: object;
  readonly depth: number;
  readonly key: string;
  readonly parent: Visit | undefined;
}

/**
 * Parses JSON from outside: bounded in size and depth, and without keys that access an object's prototype.
 * Error messages contain the path, never the content.
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
    // The engine's message quotes the text, which may contain a secret.
    const position = error instanceof Error ? /position \d+/.exec(error.message) : null;
    throw new InvalidInputError(`${what} is not valid JSON${position === null ? "" : ` (at ${position[0]})`}`);
  }
  if (typeof value === "object" && value !== null) inspect(value, maxDepth, what);
  return value;
}

/** Without recursion, because the depth is not known to be bounded yet. */
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
 * JSON with sorted keys and no spaces, for hashes: equal values have equal texts, independent of the order in which their members
 * were added. Members that are `undefined` are left out, as in JSON.
 * @throws InvalidInputError for values that are not JSON (dates, functions, NaN, cycles) and below depth 200.
 */
export function stableStringify(value: unknown): string {
  return stringifyAt(value, 1);
}

function stringifyAt(value: unknown, depth: number): string {
  if (value === null || typeof value === "boolean" || typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number" && Number.isFinite(value)) return JSON.stringify(value);
  if (typeof value !== "object")
    throw new InvalidInputError(`${typeof value === "number" ? value : typeof value} is not a JSON value`);
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

/** The same type, read-only at every level. `Json` is already read-only, and mapping a recursive type would not terminate. */
export type DeepReadonly<T> = [Json] extends [T] ? T : ReadonlyMembers<T>;

type ReadonlyMembers<T> = T extends (...args: never[]) => unknown
  ? T
  : T extends readonly unknown[] | object
    ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
    : T;

/**
 * Deeply freezes a plain value in place and returns it. A frozen object is not visited again, so freezing twice costs nothing.
 * Pass only values that our own code created: neither objects that other code may still change, nor objects that are only
 * shallowly frozen (`Object.freeze`).
 */
export function deepFreeze<T>(value: T): DeepReadonly<T> {
  if (typeof value === "object" && value !== null) freezeAll(value);
  return value as DeepReadonly<T>;
}

/** Every entry and message is frozen here. A list of its members would double the cost, and plain values inherit no members. */
function freezeAll(value: object): void {
  if (!Object.isExtensible(value) && Object.isFrozen(value)) return;
  Object.freeze(value);
  if (Array.isArray(value)) {
    for (const member of value as readonly unknown[]) freezeMember(member);
    return;
  }
  for (const key in value) freezeMember((value as Record<string, unknown>)[key]);
}

function freezeMember(member: unknown): void {
  if (typeof member === "object" && member !== null) freezeAll(member);
}

const changing = ["push", "pop", "shift", "unshift", "splice", "sort", "reverse", "fill", "copyWithin"] as const;

/**
 * Creates frozen lists whose errors explain why they cannot be changed and what to do instead; the errors of a frozen array only
 * mention properties. The list is a copy; its members are not frozen here. In all other respects (JSON, spread,
 * `structuredClone`, comparisons) it is an array.
 * @param hint A sentence without its full stop: "draft.messages is read-only: use draft.add(…)".
 */
export function readOnlyLists(hint: string): <T>(members: readonly T[]) => readonly T[] {
  const refusals: PropertyDescriptorMap = {};
  for (const method of changing) {
    const refuse = (): never => {
      throw new InvalidInputError(`${method}() cannot be used here: ${hint}`);
    };
    refusals[method] = { value: refuse };
  }
  // Own methods instead of a subclass: engines spread and iterate quickly only over arrays with the ordinary prototype.
  return (members) => Object.freeze(Object.defineProperties(members.slice(), refusals));
}

const refusedChange = /^Cannot (?:assign to read only|add|delete|define|redefine) property|is not extensible$/;

/** Whether code tried to change a frozen value. JavaScript's message names the property, but not the right alternative. */
export function isRefusedChange(error: unknown): boolean {
  return error instanceof TypeError && refusedChange.test(error.message);
}

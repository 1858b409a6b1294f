import { InvalidInputError } from "../errors/index.ts";
import { describeThrown, describeValue } from "./describe-value.ts";
import { maxJsonDepth } from "./safe-json.ts";

/** Any JSON value. What is journalled is JSON and nothing else (row S10). */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

export type Path = readonly (string | number)[];

/** The first place of a value that is not plain JSON. */
export interface NotJson {
  readonly path: Path;
  readonly message: string;
}

export type ToJson = { readonly ok: true; readonly json: Json } | { readonly ok: false; readonly issue: NotJson };

export interface JsonBounds {
  /** Levels of arrays and objects. Default 200. */
  readonly maxDepth?: number | undefined;
  /** Characters of all texts and keys together, with one for every other value. Default 16 Mi (2^24). */
  readonly maxSize?: number | undefined;
}

/**
 * A copy that is plain JSON, or the first place that is not. Members that are `undefined` are left out, as JSON does;
 * dates, maps, class instances, functions, bigints and numbers that are not finite are refused, and so is what cannot be
 * read: an accessor or a proxy that throws is told as that.
 */
export function toJson(value: unknown, bounds: JsonBounds = {}): ToJson {
  const copier = new Copier(bounds);
  try {
    return { ok: true, json: copier.copy(value) };
  } catch (error) {
    return { ok: false, issue: copier.issueOf(error) };
  }
}

/** A copy of what is JSON already: user code may change its copy, never what is journalled. */
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

/** One walk over one value. The path is one array for all of it: a large value must not cost an array per member. */
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

  /** What user code threw while it was read is told as such: it is no error of ours. */
  issueOf(error: unknown): NotJson {
    const path = [...this.#path];
    if (error instanceof InvalidInputError) return { path, message: error.message };
    return { path, message: `cannot be read: ${describeThrown(error)}` };
  }

  #list(list: readonly unknown[]): Json {
    // An array may have a length of billions and not one member.
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

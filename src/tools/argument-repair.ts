import { InvalidInputError } from "../errors/index.ts";
import { parseJson } from "../base/index.ts";
import type { JsonObject } from "../state/index.ts";
import { createStepLimit, TooManySteps } from "./linear-pattern.ts";
import type { Repair } from "./parsed-arguments.ts";
import { SchemaCheck } from "./schema-check.ts";
import { isObject, readDocument, type SchemaObject } from "./schema-document.ts";
import { isOfType } from "./schema-values.ts";

/**
 * The second reading of values that models write. It changes only those parts that do not fit the JSON Schema as they are:
 *
 * 1. `null` for an optional member that cannot be null is absence.
 * 2. A JSON text where the schema wants an object, a list, a number or a boolean is decoded.
 * 3. Of several alternatives (`anyOf`, `oneOf`) the first one that fits after these changes counts.
 *
 * The schema is read at the first use. A schema or value that takes too many steps is left as it is.
 */
export function createRepair(jsonSchema: JsonObject): Repair {
  let reader: Reader | undefined;
  return (value) => {
    reader ??= new Reader(jsonSchema);
    return reader.read(value);
  };
}

class Reader {
  readonly #root: JsonObject;
  readonly #limit = createStepLimit();
  readonly #check: SchemaCheck;

  constructor(root: JsonObject) {
    this.#root = root;
    this.#check = new SchemaCheck(readDocument(root, root["$schema"], this.#limit), this.#limit);
  }

  read(value: unknown): unknown {
    this.#limit.reset();
    try {
      return this.#read(this.#root, value, []);
    } catch (error) {
      // Values nested too deeply overflow the stack.
      if (error instanceof TooManySteps || error instanceof RangeError) return value;
      throw error;
    }
  }

  #fits(schema: unknown, value: unknown): boolean {
    return this.#check.wouldFit(schema, value, { parent: undefined, key: "", open: [] });
  }

  /** @param open The schemas that this very value is being read by. */
  #read(schema: unknown, given: unknown, open: readonly SchemaObject[]): unknown {
    if (!isObject(schema) || open.includes(schema) || this.#fits(schema, given)) return given;
    const inside = [...open, schema];
    let value = decoded(schema, given);
    value = this.#read(this.#check.document.target(schema), value, inside);
    const { allOf, anyOf, oneOf } = schema;
    if (Array.isArray(allOf)) for (const branch of allOf) value = this.#read(branch, value, inside);
    for (const branches of [anyOf, oneOf]) {
      if (Array.isArray(branches)) value = this.#readByOne(branches, value, inside);
    }
    if (Array.isArray(value)) return this.#readItems(schema, value);
    return isObject(value) ? this.#readMembers(schema, value) : value;
  }

  #readByOne(branches: readonly unknown[], value: unknown, open: readonly SchemaObject[]): unknown {
    for (const branch of branches) {
      const read = this.#read(branch, value, open);
      if (this.#fits(branch, read)) return read;
    }
    return value;
  }

  #readItems({ items, prefixItems }: SchemaObject, value: readonly unknown[]): unknown {
    const first: readonly unknown[] = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : [];
    const rest = Array.isArray(items) ? undefined : items;
    const read = value.map((item, index) => this.#read(index < first.length ? first[index] : rest, item, []));
    return read.some((item, index) => item !== value[index]) ? read : value;
  }

  #readMembers({ properties, required, additionalProperties }: SchemaObject, value: SchemaObject): unknown {
    const known = isObject(properties) ? properties : {};
    const needed: readonly unknown[] = Array.isArray(required) ? required : [];
    let isChanged = false;
    const members: [string, unknown][] = [];
    for (const [name, given] of Object.entries(value)) {
      const isKnown = Object.hasOwn(known, name);
      const schema = isKnown ? known[name] : additionalProperties;
      if (isKnown && !needed.includes(name) && isNull(given) && !this.#fits(schema, given)) {
        isChanged = true;
        continue;
      }
      const read = this.#read(schema, given, []);
      isChanged ||= read !== given;
      members.push([name, read]);
    }
    return isChanged ? Object.fromEntries(members) : value;
  }
}

/** Some models write the word where they leave a member out. */
function isNull(value: unknown): boolean {
  return value === null || (typeof value === "string" && value.trim() === "null");
}

/** A text as the JSON in it, where the schema names its types and a text is none of them. */
function decoded(schema: SchemaObject, value: unknown): unknown {
  if (typeof value !== "string" || schema["type"] === undefined || isOfType(value, schema)) return value;
  const json = jsonIn(value);
  return json !== undefined && isOfType(json, schema) ? json : value;
}

/** How often a text may be encoded. */
const MOST_ENCODINGS = 3;

/**
 * The value of a JSON text that holds no text: encoded once, or up to three times. Undefined for any other text, and for whole numbers
 * that would lose digits.
 */
export function jsonIn(text: string): unknown {
  let value: unknown = text;
  for (let round = 0; round < MOST_ENCODINGS && typeof value === "string"; round += 1) {
    try {
      value = parseJson(value, { what: "the text" });
    } catch (error) {
      if (error instanceof InvalidInputError) return undefined;
      throw error;
    }
  }
  if (typeof value === "string" || (Number.isInteger(value) && !Number.isSafeInteger(value))) return undefined;
  return value;
}

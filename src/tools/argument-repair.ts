import type { Schema } from "@cfworker/json-schema";
import { jsonIn } from "./parsed-arguments.ts";
import { fits } from "./schema-check.ts";
import { isObject, type SchemaDocument } from "./schema-document.ts";
import { nextTask, TooSlowError, withinLimit } from "./time-limit.ts";

/**
 * The second reading of values that models write. It changes only those parts that do not fit the JSON Schema as they are:
 *
 * 1. `null` for an optional member that cannot be null is absence.
 * 2. A JSON text where the schema wants an object, a list, a number or a boolean is decoded.
 * 3. Of several alternatives (`anyOf`, `oneOf`) the first one that fits after these changes counts.
 *
 * A value that takes too long is left as it is.
 */
export async function repaired(document: SchemaDocument, value: unknown): Promise<unknown> {
  await nextTask();
  try {
    return withinLimit(() => new Reader(document).read(document.root, value, []));
  } catch (error) {
    // Values nested too deeply overflow the stack.
    if (error instanceof TooSlowError || error instanceof RangeError) return value;
    throw error;
  }
}

type AnySchema = Schema | boolean | undefined;

class Reader {
  readonly #document: SchemaDocument;

  constructor(document: SchemaDocument) {
    this.#document = document;
  }

  /** @param open The schemas that this very value is being read by. */
  read(schema: AnySchema, given: unknown, open: readonly Schema[]): unknown {
    if (!isObject(schema) || open.includes(schema) || fits(this.#document, schema, given)) return given;
    const inside = [...open, schema];
    let value = decoded(schema, given);
    const { $ref, allOf = [], anyOf = [], oneOf = [] } = schema;
    if ($ref !== undefined) value = this.read(this.#document.targets[$ref], value, inside);
    for (const branch of allOf) value = this.read(branch, value, inside);
    for (const branches of [anyOf, oneOf]) value = this.#readByOne(branches, value, inside);
    if (Array.isArray(value)) return this.#readItems(schema, value);
    return isObject(value) ? this.#readMembers(schema, value) : value;
  }

  #readByOne(branches: readonly Schema[], value: unknown, open: readonly Schema[]): unknown {
    for (const branch of branches) {
      const read = this.read(branch, value, open);
      if (fits(this.#document, branch, read)) return read;
    }
    return value;
  }

  #readItems({ items, prefixItems }: Schema, value: readonly unknown[]): unknown {
    const first = prefixItems ?? (Array.isArray(items) ? items : []);
    const rest = Array.isArray(items) ? undefined : items;
    const read = value.map((item, index) => this.read(index < first.length ? first[index] : rest, item, []));
    return read.some((item, index) => item !== value[index]) ? read : value;
  }

  #readMembers(schema: Schema, value: Readonly<Record<string, unknown>>): unknown {
    const { properties: known = {}, required: needed = [], additionalProperties } = schema;
    let isChanged = false;
    const members: [string, unknown][] = [];
    for (const [name, given] of Object.entries(value)) {
      const isKnown = Object.hasOwn(known, name);
      const own = isKnown ? known[name] : additionalProperties;
      if (isKnown && !needed.includes(name) && isNull(given) && !this.#isFitting(own, given)) {
        isChanged = true;
        continue;
      }
      const read = this.read(own, given, []);
      isChanged ||= read !== given;
      members.push([name, read]);
    }
    return isChanged ? Object.fromEntries(members) : value;
  }

  #isFitting(schema: AnySchema, value: unknown): boolean {
    return schema === undefined || fits(this.#document, schema, value);
  }
}

/** Some models write the word where they leave a member out. */
function isNull(value: unknown): boolean {
  return value === null || (typeof value === "string" && value.trim() === "null");
}

/** A text as the JSON in it, where the schema names its types and a text is none of them. */
function decoded({ type }: Schema, value: unknown): unknown {
  if (typeof value !== "string" || type === undefined || isOfType(value, type)) return value;
  const json = jsonIn(value);
  return json !== undefined && isOfType(json, type) ? json : value;
}

function isOfType(value: unknown, type: NonNullable<Schema["type"]>): boolean {
  return [type].flat().some((one) => {
    if (one === "null" || value === null) return value === null && one === "null";
    if (one === "array" || Array.isArray(value)) return Array.isArray(value) && one === "array";
    return one === "integer" ? Number.isInteger(value) : typeof value === one;
  });
}

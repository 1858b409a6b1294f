import type { Schema } from "@cfworker/json-schema";
import { jsonIn } from "./parsed-arguments.ts";
import { fits } from "./schema-check.ts";
import { isObject, type SchemaDocument } from "./schema-document.ts";
import { nextTask, TooSlowError, withinLimit } from "./time-limit.ts";

/**
 * Reads values that models wrote a second time. It changes only values that do not fit the JSON Schema:
 *
 * 1. `null` for an optional member that must not be null counts as a missing member.
 * 2. JSON text is decoded where the schema expects an object, an array, a number or a boolean.
 * 3. Of several alternatives (`anyOf`, `oneOf`) the first one that fits after these changes is used.
 *
 * A value that takes too long is returned unchanged.
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

  /** @param open The schemas that are being applied to this value already. */
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

/** Some models write the text "null" for a missing member. */
function isNull(value: unknown): boolean {
  return value === null || (typeof value === "string" && value.trim() === "null");
}

/** Decodes JSON text if the schema's types do not include a string. */
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

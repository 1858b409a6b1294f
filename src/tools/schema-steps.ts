import { InvalidInputError } from "../errors/index.ts";
import { createLinearPattern } from "./linear-pattern.ts";
import { createStepLimit } from "./step-limit.ts";

/** The keyword that is put into every subschema: its value is what visiting that subschema costs, in steps. */
export const visitKeyword = "troupe:visit";

/** Compiling takes about a millisecond for every ten of them, and a long list of keywords overflows the compiler. */
const maxSubschemas = 1_000;

type SchemaObject = Record<string, unknown>;

const schemaMaps = new Set(["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"]);
const plainValues = new Set(["const", "enum", "default", "examples", "required", "dependentRequired", "type"]);
const unbounded = ["enum", "const", "required", "dependentRequired", "type"];
const refusedKeywords: Readonly<Record<string, string>> = {
  $async: "a tool's arguments are checked synchronously",
  $recursiveRef: "use $ref",
};

/**
 * Gives a copy of a foreign schema in which each subschema counts its own visits, so that references which multiply
 * cannot hold the event loop (guarantee S11). Throws `InvalidInputError`, with the place, for what cannot be bounded:
 * patterns that need backtracking, more than 1,000 subschemas, references out of the schema or to something that is no subschema.
 */
export function countVisits(schema: SchemaObject): SchemaObject {
  const found: Found = { references: [], subschemas: 0 };
  const copy = walk(schema, "#", found);
  for (const { target, at } of found.references) {
    if (!isCounted(target === "#" ? copy : resolvePointer(copy, target))) {
      throw new InvalidInputError(
        `The JSON Schema has a reference at ${at} to ${JSON.stringify(target.slice(0, 100))}, which is no subschema of it. Use "#/$defs/<name>".`,
      );
    }
  }
  return copy;
}

interface Found {
  readonly references: { readonly target: string; readonly at: string }[];
  subschemas: number;
}

function walk(schema: SchemaObject, at: string, found: Found): SchemaObject {
  found.subschemas += 1;
  if (found.subschemas > maxSubschemas) {
    throw new InvalidInputError(`The JSON Schema has more than ${maxSubschemas} subschemas; say it with fewer.`);
  }
  const copy: SchemaObject = {};
  for (const [key, value] of Object.entries(schema)) {
    const here = `${at}/${key}`;
    checkKeyword(key, value, at, found);
    if (plainValues.has(key)) copy[key] = value;
    else if (schemaMaps.has(key) && isObject(value)) copy[key] = walkMap(key, value, here, found);
    else copy[key] = walkValue(value, here, found);
  }
  copy[visitKeyword] = visitCost(schema);
  return copy;
}

function walkMap(keyword: string, map: SchemaObject, at: string, found: Found): SchemaObject {
  const copy: SchemaObject = {};
  for (const [key, value] of Object.entries(map)) {
    if (keyword === "patternProperties") checkPattern(key, at);
    copy[key] = walkValue(value, `${at}/${key}`, found);
  }
  return copy;
}

/** Keywords that are not known count as schemas too: a reference may lead into them. */
function walkValue(value: unknown, at: string, found: Found): unknown {
  if (Array.isArray(value)) return value.map((member, index) => walkValue(member, `${at}/${index}`, found));
  return isObject(value) ? walk(value, at, found) : value;
}

function checkKeyword(key: string, value: unknown, at: string, found: Found): void {
  if (Object.hasOwn(refusedKeywords, key)) {
    throw new InvalidInputError(`The JSON Schema uses ${key} at ${at}: ${refusedKeywords[key]}.`);
  }
  if (key === "$id" && at !== "#") {
    throw new InvalidInputError(`The JSON Schema has an $id at ${at}: only its root may have one.`);
  }
  if (key === "pattern" && typeof value === "string") checkPattern(value, at);
  if ((key !== "$ref" && key !== "$dynamicRef") || typeof value !== "string") return;
  if (!value.startsWith("#")) {
    const shown = JSON.stringify(value.slice(0, 100));
    throw new InvalidInputError(
      `The JSON Schema refers to ${shown} at ${at}: only references within the schema ("#/$defs/<name>") are followed.`,
    );
  }
  if (value === "#" || value.startsWith("#/")) found.references.push({ target: value, at });
}

function checkPattern(pattern: string, at: string): void {
  try {
    createLinearPattern(pattern, createStepLimit());
  } catch (error) {
    const reason = error instanceof Error ? error.message : "it cannot be read";
    throw new InvalidInputError(
      `The JSON Schema has a pattern at ${at} that is not supported: ${JSON.stringify(pattern.slice(0, 100))}: ${reason}.`,
    );
  }
}

/** Lists of values are compared one by one, so a visit costs in proportion to their text. */
function visitCost(schema: SchemaObject): number {
  let cost = 20;
  for (const keyword of unbounded) {
    if (schema[keyword] !== undefined) cost += JSON.stringify(schema[keyword]).length >> 3;
  }
  for (const keyword of schemaMaps) {
    const map = schema[keyword];
    if (isObject(map)) cost += Object.keys(map).length;
  }
  // A branch that fails at its type is not visited, so its parent pays for it.
  for (const keyword of ["allOf", "anyOf", "oneOf"]) {
    const branches = schema[keyword];
    if (Array.isArray(branches)) cost += branches.length * 10;
  }
  return cost;
}

function resolvePointer(root: SchemaObject, pointer: string): unknown {
  let at: unknown = root;
  for (const part of pointer.slice(2).split("/")) {
    const key = decodePointerPart(part);
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return undefined;
    at = (at as SchemaObject)[key];
  }
  return at;
}

function decodePointerPart(part: string): string {
  const unescaped = part.replaceAll("~1", "/").replaceAll("~0", "~");
  try {
    return decodeURIComponent(unescaped);
  } catch {
    return unescaped;
  }
}

function isCounted(target: unknown): boolean {
  return typeof target === "boolean" || (isObject(target) && Object.hasOwn(target, visitKeyword));
}

function isObject(value: unknown): value is SchemaObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

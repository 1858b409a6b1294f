import { deepFreeze, renderPath, toJson, wordsOfThrown } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { Json, JsonObject } from "../state/index.ts";
import { checkValue, createRepair, type Issue, jsonSchemaOf, type ValueSchema } from "../tools/index.ts";
import { jsonDocumentsIn } from "./json-answer.ts";
import { partialJsonIn } from "./partial-json.ts";

/** The schema of an answer, prepared for the request and for validating the answer. */
export interface OutputSchema<Output = unknown> {
  /** The schema from the definition. */
  readonly jsonSchema: JsonObject;
  /** The schema sent to the model: servers accept only objects, so a root of another type is wrapped in an object as `value`. */
  readonly sentSchema: JsonObject;
  /** Parses an answer, including the schema's refinements and transforms. Never rejects. */
  parse(text: string): Promise<ParsedOutput>;
  /** The value of an unfinished answer so far, unwrapped but not validated; `undefined` until it begins. Takes time in proportion to the text's length. */
  readonly partial: (text: string) => Json | undefined;
  /** Type only: the parsed answer's type in the code that defines the agent. */
  readonly type?: Output;
}

export type ParsedOutput =
  | { readonly ok: true; readonly value: Json }
  /** The mistakes, phrased for the model. */
  | { readonly ok: false; readonly issues: string };

/** Maximum number of issues reported per answer. */
const ISSUES_TOLD = 5;

/** Throws `InvalidInputError` if the schema cannot be expressed as JSON Schema. */
export function outputSchemaOf(agent: string, schema: ValueSchema): OutputSchema {
  let shape: JsonObject;
  try {
    shape = jsonSchemaOf(schema);
  } catch (error) {
    throw new InvalidInputError(`agent "${agent}": output has no JSON Schema: ${wordsOfThrown(error)}`, {
      cause: error,
    });
  }
  const isWrapped = shape["type"] !== "object";
  const sentSchema = isWrapped ? wrapped(shape) : shape;
  const repair = createRepair(shape);
  const readings = async function* (document: unknown): AsyncGenerator {
    const given = isWrapped && isWrapper(document) ? [document[WRAPPED], document] : [document];
    for (const value of given) {
      yield value;
      const read = await repair(value);
      if (read !== value) yield read;
    }
  };
  const partial = (text: string): Json | undefined => {
    const value = partialJsonIn(text) as Json | undefined;
    if (isWrapped) return unwrapped(value);
    return Array.isArray(value) ? undefined : value;
  };
  return deepFreeze({ jsonSchema: shape, sentSchema, parse: (text: string) => parse(schema, text, readings), partial });
}

/** An empty object may become the wrapper. */
function unwrapped(value: Json | undefined): Json | undefined {
  if (isWrapper(value)) return value[WRAPPED];
  const isEmpty = typeof value === "object" && value !== null && Object.keys(value).length === 0;
  return isEmpty && !Array.isArray(value) ? undefined : value;
}

/** The last valid document of the answer is used; if none is valid, the mistakes of the last one are reported. */
async function parse(
  schema: ValueSchema,
  text: string,
  readings: (document: unknown) => AsyncIterable<unknown>,
): Promise<ParsedOutput> {
  let first: ParsedOutput | undefined;
  for (const document of jsonDocumentsIn(text)) {
    for await (const value of readings(document)) {
      const parsed = await check(schema, value);
      if (parsed.ok) return parsed;
      first ??= parsed;
    }
  }
  return first ?? { ok: false, issues: "it is not JSON" };
}

async function check(schema: ValueSchema, given: unknown): Promise<ParsedOutput> {
  const checked = await checkValue(schema, given);
  if (!checked.ok) {
    if ("issues" in checked) return { ok: false, issues: shownIssues(checked.issues) };
    return { ok: false, issues: `it could not be checked: ${checked.thrown}` };
  }
  const value = toJson(checked.value);
  if (value.ok) return { ok: true, value: value.json };
  const { path, message } = value.issue;
  return { ok: false, issues: `the schema's output is not valid JSON: ${renderPath(path)}: ${message}` };
}

/** The member that contains a root that is not an object. */
const WRAPPED = "value";

function isWrapper<Value>(document: Value): document is Value & { readonly value: Json } {
  if (typeof document !== "object" || document === null || Array.isArray(document)) return false;
  const names = Object.keys(document);
  return names.length === 1 && names[0] === WRAPPED;
}

/**
 * Definitions stay at the root because references within the schema point there; a root that refers to itself becomes one of
 * them.
 */
function wrapped({ $schema, $defs = {}, ...shape }: JsonObject): JsonObject {
  const definitions = { ...($defs as JsonObject), [ROOT]: shape };
  const moved = movedReferences(definitions) as JsonObject;
  const { [ROOT]: root = {}, ...others } = moved;
  const isRecursive = JSON.stringify(moved) !== JSON.stringify(definitions);
  const used = isRecursive ? moved : others;
  return {
    ...($schema === undefined ? {} : { $schema }),
    type: "object",
    properties: { [WRAPPED]: isRecursive ? { $ref: ROOT_REFERENCE } : root },
    required: [WRAPPED],
    additionalProperties: false,
    ...(Object.keys(used).length === 0 ? {} : { $defs: used }),
  };
}

const ROOT = "__root";
const ROOT_REFERENCE = `#/$defs/${ROOT}`;

/** The schema with references to the root redirected to its definition. */
function movedReferences(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(movedReferences);
  if (typeof schema !== "object" || schema === null) return schema;
  return Object.fromEntries(
    Object.entries(schema).map(([keyword, value]) => [
      keyword,
      keyword === "$ref" && value === "#" ? ROOT_REFERENCE : movedReferences(value),
    ]),
  );
}

function shownIssues(issues: readonly Issue[]): string {
  const shown = issues.slice(0, ISSUES_TOLD).map(({ path, message, expected }) => {
    const line = expected === undefined ? message : `${message} (expected ${expected})`;
    return path.length === 0 ? line : `${path.join(".")}: ${line}`;
  });
  const more = issues.length - shown.length;
  return more > 0 ? `${shown.join("; ")}; and ${more} more` : shown.join("; ");
}

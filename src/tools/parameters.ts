import { copyOfJson, deepFreeze, parseJson, toJson, wordsOfThrown } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { Json, JsonObject } from "../state/index.ts";
import type { Refuse } from "./definition-checks.ts";
import { headOf } from "./output.ts";
import { jsonIn, type Parameters, type ParsedArguments, type Refusal, type Repair, unfit } from "./parsed-arguments.ts";
import { readDocument, type SchemaDocument } from "./schema-document.ts";
import { secretClashIn, secretGivenIn, type SecretResolvers } from "./secrets.ts";
import { checkValue, isValueSchema, jsonSchemaOf, type ValueSchema, valueSchemaKinds } from "./standard-schema.ts";

/** A schema of an object (zod 4, arktype, valibot, any Standard JSON Schema), or the text of a JSON Schema. */
export type ToolParameters = ValueSchema | string;

/** Throws the error from `refuse` for a value that is neither, cannot be compiled, or does not describe an object. */
export function readParameters(parameters: ToolParameters, refuse: Refuse = plainly): Parameters {
  let read: ReadSchema;
  try {
    read = readSchema(parameters);
  } catch (error) {
    if (error instanceof InvalidInputError) throw refuse(error.message, error);
    throw error;
  }
  if (read.jsonSchema["type"] !== "object") {
    const found = JSON.stringify(read.jsonSchema["type"]) ?? "no type";
    throw refuse(
      `The parameters must describe an object, but the schema's root has ${found}: use z.object({ … }) or "type": "object".`,
    );
  }
  // Some providers refuse an object schema that does not list its properties.
  const { unchecked } = read;
  const jsonSchema = deepFreeze({ properties: {}, ...read.jsonSchema });
  return { jsonSchema, unchecked, check: (value) => read.check(value), repair: createRepair(jsonSchema) };
}

type ReadSchema = Omit<Parameters, "repair">;

/** Creates the repair function (`repaired`) for values that models wrote for a schema. */
export function createRepair(jsonSchema: JsonObject): Repair {
  let document: SchemaDocument | undefined;
  return async (value) => {
    const { repaired } = await import("./argument-repair.ts");
    document ??= readDocument(jsonSchema);
    return await repaired(document, value);
  };
}

/** The field of a tool that lists unchecked fragments of its schema; absent if everything is checked. */
export function uncheckedOf({ unchecked = [] }: Parameters): { readonly unchecked?: readonly string[] } {
  return unchecked.length === 0 ? {} : { unchecked: Object.freeze([...unchecked]) };
}

const plainly: Refuse = (what, cause) => new InvalidInputError(what, { cause });

function readSchema(parameters: unknown): ReadSchema {
  if (typeof parameters === "string") return jsonSchemaParameters(parameters);
  if (isValueSchema(parameters)) return authoredParameters(parameters);
  throw new InvalidInputError(`The parameters must be ${valueSchemaKinds}, or a string that holds a JSON Schema.`);
}

const defaultMaxBytes = 1_000_000;
const maxReasonCharacters = 1_000;

interface ParseOptions {
  readonly toolName: string;
  /** Default 1,000,000. */
  readonly maxBytes?: number | undefined;
  readonly secrets?: SecretResolvers | undefined;
}

/**
 * Parses and checks the model's arguments. If they do not fit, they are repaired and checked again; the repaired value is then
 * journalled, shown and run. An empty text and `null` count as `{}`. Never rejects: mistakes are returned as a message for the model
 * (guarantees F24, S9).
 */
export async function parseArguments(
  parameters: Parameters,
  text: string,
  options: ParseOptions,
): Promise<ParsedArguments> {
  const { toolName, maxBytes = defaultMaxBytes, secrets } = options;
  let value: unknown;
  try {
    value = parseJson(text.trim() === "" ? "{}" : text, { maxBytes, what: "the arguments text" });
  } catch (error) {
    const reason = error instanceof InvalidInputError ? error.message : "the arguments text cannot be read";
    // The path to a forbidden key consists of the model's own keys, of any length.
    return refused(toolName, `${headOf(reason, maxReasonCharacters)}. It must be one complete JSON object.`);
  }
  // An object that was encoded twice arrives as a string.
  if (typeof value === "string") value = value.trim() === "" ? {} : (jsonIn(value) ?? value);
  value ??= {};
  if (typeof value !== "object" || Array.isArray(value)) {
    return refused(toolName, `the arguments must be one JSON object, not ${kindOf(value)}.`);
  }
  const given = secrets && secretGivenIn(value as object, secrets);
  if (given !== undefined) return refused(toolName, given);
  let checked = await parameters.check(value);
  if (!checked.ok) {
    const repaired = await parameters.repair(value);
    if (repaired !== value) checked = await parameters.check(repaired);
  }
  if (!checked.ok) {
    const { message, issues } = checked;
    return { ...refused(toolName, `the arguments do not fit its parameters:\n${message}`), issues };
  }
  const clash = secrets && secretClashIn(checked.json, secrets);
  return clash === undefined ? checked : refused(toolName, `${clash}\n${faultOfTool}`);
}

const faultOfTool = "This is a fault of the tool, not of the arguments.";

function refused(toolName: string, what: string): Refusal {
  return { ok: false, message: `The tool ${toolName} was not run: ${what}\nCorrect the arguments and call it again.` };
}

function kindOf(value: unknown): string {
  return Array.isArray(value) ? "an array" : `a ${typeof value}`;
}

/** Parameters declared by a schema of the author's library. Throws `InvalidInputError` if JSON Schema cannot express it. */
function authoredParameters(schema: ValueSchema): ReadSchema {
  return { jsonSchema: writtenSchema(schema), check: (value) => check(schema, value) };
}

function writtenSchema(schema: ValueSchema): JsonObject {
  try {
    const { $schema: _ignored, ...jsonSchema } = jsonSchemaOf(schema);
    return jsonSchema;
  } catch (error) {
    throw new InvalidInputError(
      `The parameters cannot be shown to a model: ${wordsOfThrown(error)}. Use types that JSON has, for instance z.iso.datetime() for a date.`,
      { cause: error },
    );
  }
}

async function check(schema: ValueSchema, given: unknown): Promise<ParsedArguments> {
  const checkedValue = await checkValue(schema, given);
  if (!checkedValue.ok) {
    if ("issues" in checkedValue) return unfit(checkedValue.issues);
    return { ok: false, message: `they could not be checked (${checkedValue.thrown.slice(0, 200)})` };
  }
  const { value } = checkedValue;
  const json = toJson(value);
  if (json.ok) return { ok: true, value, json: json.json };
  const { path, message } = json.issue;
  const transformed = { path, message: `the tool's own transform returned something other than JSON: ${message}` };
  return { ok: false, message: `${unfit([transformed]).message}\n${faultOfTool}` };
}

const maxSchemaBytes = 256_000;
const maxRemembered = 1_000;
/** Bounds the memory: the texts may come from callers of a server. */
const maxRememberedCharacters = 10_000_000;

/**
 * Parameters declared by the text of a JSON Schema, of any draft from 4 to 2020-12; defaults are not filled in. The schema may be
 * untrusted: references outside of it are not followed, no code is generated from it, each check of a value has a time limit, and
 * fragments that cannot be checked are listed in `unchecked` and shown to the model. Each text is parsed once. Throws `InvalidInputError`
 * if it is not a JSON object.
 */
function jsonSchemaParameters(text: string): ReadSchema {
  const known = remembered.get(text);
  if (known !== undefined) return known;
  const value = parseJson(text, { maxBytes: maxSchemaBytes, what: "The JSON Schema of the parameters" });
  const root = asObject(value);
  const { $schema: _draft, $id: _id, ...schema } = root;
  const document = readDocument(root);
  const parameters = {
    jsonSchema: { ...schema, ...rootTypeOf(schema) },
    unchecked: document.unchecked,
    check: (given: unknown) => checked(document, given),
  };
  rememberedCharacters += text.length;
  if (remembered.size >= maxRemembered || rememberedCharacters > maxRememberedCharacters) {
    remembered.clear();
    rememberedCharacters = text.length;
  }
  remembered.set(text, parameters);
  return parameters;
}

const remembered = new Map<string, ReadSchema>();
let rememberedCharacters = 0;

function asObject(value: unknown): JsonObject {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw new InvalidInputError('The JSON Schema of the parameters must be an object, such as {"type":"object"}.');
}

/** Arguments are always an object: providers require that the schema declares it, and a foreign schema may not. */
function rootTypeOf({ type }: JsonObject): JsonObject {
  return type === undefined || (Array.isArray(type) && type.includes("object")) ? { type: "object" } : {};
}

async function checked(document: SchemaDocument, value: unknown): Promise<ParsedArguments> {
  const [{ issuesOf }, { TooSlowError }] = await Promise.all([import("./schema-check.ts"), import("./time-limit.ts")]);
  try {
    const issues = await issuesOf(document, value);
    return issues.length === 0 ? accepted(value) : unfit(issues);
  } catch (error) {
    if (error instanceof TooSlowError) return { ok: false, message: error.message };
    // Deep nesting overflowed the stack; nothing else throws here.
    return { ok: false, message: "the schema of this tool cannot be checked against them" };
  }
}

/** The tool gets a copy, so that its changes to the arguments do not affect the journal. */
function accepted(value: unknown): ParsedArguments {
  const copied = toJson(value);
  if (copied.ok) return { ok: true, value: copied.json, json: value as Json };
  return unfit([copied.issue]);
}

const maxDescribedCharacters = 500;

/** The text of a call for the person who decides on it: `name(arguments as JSON, cut at 500 characters)`. */
function describeByArguments(name: string, args: Json): string {
  const text = JSON.stringify(args);
  const shown = text.length > maxDescribedCharacters ? `${headOf(text, maxDescribedCharacters)}…` : text;
  return `${name}(${shown})`;
}

/**
 * The author's description of a call, or its arguments if there is none. If the author's function throws or does not return a string, the
 * arguments are shown, so that a person can still decide. Never throws.
 */
export function describer(name: string, describe: ((args: never) => string) | undefined): (args: Json) => string {
  return (args) => {
    if (describe === undefined) return describeByArguments(name, args);
    try {
      const words: unknown = describe(copyOfJson(args) as never);
      if (typeof words === "string" && words.trim() !== "") return words;
    } catch {
      // The arguments are shown instead.
    }
    return describeByArguments(name, args);
  };
}

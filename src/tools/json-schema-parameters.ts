import type { ErrorObject, ValidateFunction } from "ajv/dist/2020.js";
import { parseJson, toJson } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { Json, JsonObject } from "../state/index.ts";
import { renderIssues } from "./issues.ts";
import { createCompiler, issuesOf, type SchemaCompiler } from "./schema-compiler.ts";
import type { Parameters, ParsedArguments } from "./parsed-arguments.ts";
import { countVisits } from "./schema-steps.ts";
import { type StepLimit, TooManySteps } from "./step-limit.ts";

const maxSchemaBytes = 256_000;
const definitionSteps = 100_000_000;
const allErrorsSteps = 100_000;
const maxRemembered = 1_000;

/**
 * Parameters given as the text of a JSON Schema (row R7). It is read as draft 2020-12; its root's `$schema` and `$id`
 * are ignored, and defaults are not filled in. The schema may be a stranger's: no reference leaves it, and no check of
 * a value takes more than a fixed number of steps (guarantee S11). Compiled once per text. Throws `InvalidInputError`.
 */
export function jsonSchemaParameters(text: string): Parameters {
  const known = remembered.get(text);
  if (known !== undefined) return known;
  const value = parseJson(text, { maxBytes: maxSchemaBytes, what: "The JSON Schema of the parameters" });
  const { $schema: _draft, $id: _id, ...schema } = asObject(value);
  const parameters = { jsonSchema: schema, check: checkerOf(schema) };
  if (remembered.size >= maxRemembered) remembered.clear();
  remembered.set(text, parameters);
  return parameters;
}

let compiler: SchemaCompiler | undefined;
const remembered = new Map<string, Parameters>();

function asObject(value: unknown): JsonObject {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw new InvalidInputError('The JSON Schema of the parameters must be an object, such as {"type":"object"}.');
}

/**
 * Most arguments fit: the first pass stops at the first mistake. Only then a second, short one looks for the others;
 * where that takes too long, the model is told of the first alone.
 */
function checkerOf(schema: JsonObject): (value: unknown) => ParsedArguments {
  const { limit } = (compiler ??= createCompiler());
  const counted = countVisits(schema);
  limit.reset(definitionSteps);
  const first = compiler.compileFirst(counted);
  const all = compiler.compileAll(counted);
  return (value) => {
    try {
      limit.reset();
      if (first(value)) return accepted(value);
    } catch (error) {
      if (error instanceof TooManySteps) return { ok: false, message: error.message };
      // A schema that refers to itself without end overflows the stack; nothing else throws here.
      return { ok: false, message: "the schema of this tool cannot be checked against them" };
    }
    return { ok: false, message: renderIssues(issuesOf(errorsOf(all, value, limit) ?? first.errors ?? [])) };
  };
}

function errorsOf(all: ValidateFunction, value: unknown, limit: StepLimit): readonly ErrorObject[] | undefined {
  try {
    limit.reset(allErrorsSteps);
    all(value);
    return all.errors ?? undefined;
  } catch {
    return undefined;
  }
}

/** The tool gets a copy of its own: what it does to its arguments must not reach the journal. */
function accepted(value: unknown): ParsedArguments {
  const copied = toJson(value);
  if (copied.ok) return { ok: true, value: copied.json, json: value as Json };
  return { ok: false, message: renderIssues([copied.issue]) };
}

import { z } from "zod";
import { parseJson } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { Refuse } from "./definition-checks.ts";
import { jsonSchemaParameters } from "./json-schema-parameters.ts";
import { headOf } from "./output.ts";
import type { Parameters, ParsedArguments } from "./parsed-arguments.ts";
import { type SecretResolvers, secretClashIn, secretGivenIn } from "./secrets.ts";
import { zodParameters } from "./zod-parameters.ts";

/** A zod 4 object schema, or the text of a JSON Schema (row R7). */
export type ToolParameters = z.ZodType | string;

/** Throws by `refuse` what is neither, cannot be compiled, or does not describe an object. */
export function readParameters(parameters: ToolParameters, refuse: Refuse = plainly): Parameters {
  let read: Parameters;
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
  const { unchecked, check } = read;
  return { jsonSchema: { properties: {}, ...read.jsonSchema }, unchecked, check: (value) => check(value) };
}

/** What a tool tells of its parameters that only the model heeds. */
export function uncheckedOf({ unchecked = [] }: Parameters): { readonly unchecked?: readonly string[] } {
  return unchecked.length === 0 ? {} : { unchecked: Object.freeze([...unchecked]) };
}

const plainly: Refuse = (what, cause) => new InvalidInputError(what, { cause });

function readSchema(parameters: unknown): Parameters {
  if (typeof parameters === "string") return jsonSchemaParameters(parameters);
  if (parameters instanceof z.ZodType) return zodParameters(parameters);
  throw new InvalidInputError("The parameters must be a zod 4 schema, or a string that holds a JSON Schema.");
}

const defaultMaxBytes = 1_000_000;
const maxReasonCharacters = 1_000;

export interface ParseOptions {
  readonly toolName: string;
  /** Default 1,000,000. */
  readonly maxBytes?: number | undefined;
  readonly secrets?: SecretResolvers | undefined;
}

/**
 * From the model's own text to checked arguments. An empty text counts as `{}`. Never throws: whatever is wrong comes
 * back as a message for the model (guarantees F24, S9).
 */
export function parseArguments(parameters: Parameters, text: string, options: ParseOptions): ParsedArguments {
  const { toolName, maxBytes = defaultMaxBytes, secrets = {} } = options;
  let value: unknown;
  try {
    value = parseJson(text.trim() === "" ? "{}" : text, { maxBytes, what: "the arguments text" });
  } catch (error) {
    const reason = error instanceof InvalidInputError ? error.message : "the arguments text cannot be read";
    // The place of a forbidden key is told by the keys on the way to it: they are the model's own, of any length.
    return refused(toolName, `${headOf(reason, maxReasonCharacters)}. It must be one complete JSON object.`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return refused(toolName, `the arguments must be one JSON object, not ${kindOf(value)}.`);
  }
  const given = secretGivenIn(value, secrets);
  if (given !== undefined) return refused(toolName, given);
  const checked = parameters.check(value);
  if (!checked.ok) return refused(toolName, `the arguments do not fit its parameters:\n${checked.message}`);
  const clash = secretClashIn(checked.json, secrets);
  return clash === undefined ? checked : refused(toolName, `${clash}\n${faultOfTool}`);
}

const faultOfTool = "This is a fault of the tool, not of the arguments.";

function refused(toolName: string, what: string): ParsedArguments {
  return { ok: false, message: `The tool ${toolName} was not run: ${what}\nCorrect the arguments and call it again.` };
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "an array" : `a ${typeof value}`;
}

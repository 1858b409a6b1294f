import { parseJson } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { Json, JsonObject } from "../state/index.ts";
import { renderIssues } from "./issues.ts";
import type { Parameters, ParsedArguments } from "./parsed-arguments.ts";
import { SchemaCheck } from "./schema-check.ts";
import { readDocument } from "./schema-document.ts";
import { createStepLimit, TooManySteps } from "./step-limit.ts";
import { toJson } from "./to-json.ts";

const maxSchemaBytes = 256_000;
const maxRemembered = 1_000;

/**
 * Parameters given as the text of a JSON Schema (row R7), of any draft from 4 to 2020-12; defaults are not filled in. The
 * schema may be a stranger's: no reference leaves it, no check of a value takes more than a fixed number of steps
 * (guarantee S11), and what cannot be checked is told in `unchecked` and stays for the model. Read once per text.
 * Throws `InvalidInputError` for what is no JSON object.
 */
export function jsonSchemaParameters(text: string): Parameters {
  const known = remembered.get(text);
  if (known !== undefined) return known;
  const value = parseJson(text, { maxBytes: maxSchemaBytes, what: "The JSON Schema of the parameters" });
  const root = asObject(value);
  const { $schema: draft, $id: _id, ...schema } = root;
  const limit = createStepLimit();
  const document = readDocument(root, draft, limit);
  const check = new SchemaCheck(document, limit);
  const parameters = {
    jsonSchema: { ...schema, ...rootTypeOf(schema) },
    unchecked: document.unchecked,
    check: (given: unknown) => checked(check, given),
  };
  if (remembered.size >= maxRemembered) remembered.clear();
  remembered.set(text, parameters);
  return parameters;
}

const remembered = new Map<string, Parameters>();

function asObject(value: unknown): JsonObject {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw new InvalidInputError('The JSON Schema of the parameters must be an object, such as {"type":"object"}.');
}

/** Arguments are always an object: providers want it said, and a foreign schema may have left it out. */
function rootTypeOf({ type }: JsonObject): JsonObject {
  return type === undefined || (Array.isArray(type) && type.includes("object")) ? { type: "object" } : {};
}

function checked(check: SchemaCheck, value: unknown): ParsedArguments {
  try {
    const issues = check.issuesOf(value);
    return issues.length === 0 ? accepted(value) : { ok: false, message: renderIssues(issues) };
  } catch (error) {
    if (error instanceof TooManySteps) return { ok: false, message: error.message };
    // Nesting that overflows the stack; nothing else throws here.
    return { ok: false, message: "the schema of this tool cannot be checked against them" };
  }
}

/** The tool gets a copy of its own: what it does to its arguments must not reach the journal. */
function accepted(value: unknown): ParsedArguments {
  const copied = toJson(value);
  if (copied.ok) return { ok: true, value: copied.json, json: value as Json };
  return { ok: false, message: renderIssues([copied.issue]) };
}

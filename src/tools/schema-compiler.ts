import { createRequire } from "node:module";
import type * as ajvModule from "ajv/dist/2020.js";
import type { AnySchema, ErrorObject, ValidateFunction } from "ajv/dist/2020.js";
import type formatsModule from "ajv-formats";
import { stableStringify } from "../base/index.ts";
import { InvalidInputError, InvariantError } from "../errors/index.ts";
import type { Json } from "../state/index.ts";
import { type Issue, renderIssues } from "./issues.ts";
import { createLinearPattern } from "./linear-pattern.ts";
import { maxPatternLength } from "./pattern-syntax.ts";
import { visitKeyword } from "./schema-steps.ts";
import { createStepLimit, type StepLimit } from "./step-limit.ts";

export interface SchemaCompiler {
  /** What all checks spend from: reset it before each. */
  readonly limit: StepLimit;
  /** The check stops at the first mistake. Throws `InvalidInputError` for what is no valid schema. */
  compileFirst(schema: AnySchema): ValidateFunction;
  /** The check finds all mistakes; combining them may be quadratic in their number. */
  compileAll(schema: AnySchema): ValidateFunction;
}

/** The validator is a heavy package: it is loaded when the first JSON Schema comes, not with this module. */
export function createCompiler(): SchemaCompiler {
  const limit = createStepLimit();
  const first = createValidator(limit, false);
  const all = createValidator(limit, true);
  return {
    limit,
    compileFirst: (schema) => compileWith(first, schema),
    compileAll: (schema) => compileWith(all, schema),
  };
}

function createValidator(limit: StepLimit, allErrors: boolean): ajvModule.Ajv2020 {
  const load = createRequire(import.meta.url);
  const { Ajv2020 } = load("ajv/dist/2020.js") as typeof ajvModule;
  const { default: addFormats } = load("ajv-formats") as typeof formatsModule;
  const linear = (source: string) => {
    const pattern = createLinearPattern(source, limit);
    return { test: (text: string) => pattern.test(text), toString: () => `/${source}/u` };
  };
  const validator = new Ajv2020({
    strict: false,
    allErrors,
    logger: false,
    // Inlining writes a subschema out once per reference; optimising costs more than it saves here.
    inlineRefs: false,
    code: { regExp: Object.assign(linear, { code: "linear" }), optimize: false },
  });
  addFormats(validator);
  boundFormats(validator, limit);
  validator.addKeyword({
    keyword: visitKeyword,
    // First of all keywords, so that a visit counts before what it leads to.
    before: "$ref",
    errors: false,
    validate: (cost: number, data: unknown) => {
      limit.spend(cost + sizeOf(data));
      return true;
    },
  });
  // The original compares every pair of items, which is quadratic.
  validator.removeKeyword("uniqueItems");
  validator.addKeyword({
    keyword: "uniqueItems",
    type: "array",
    schemaType: "boolean",
    error: { message: "must not have the same item twice" },
    validate: (wanted: boolean, items: readonly Json[]) => !wanted || areUnique(items, limit),
  });
  return validator;
}

/** Of the formats, these two are not linear in the length of the text as they come. */
function boundFormats(validator: ajvModule.Ajv2020, limit: StepLimit): void {
  const { url } = validator.formats;
  if (!(url instanceof RegExp)) throw new InvariantError('The format "url" is expected to be a regular expression.');
  const linear = createLinearPattern(url.source, limit, "iu");
  validator.addFormat("url", (text: string) => linear.test(text));
  validator.addFormat("regex", (text: string) => text.length <= maxPatternLength && isExpression(text));
}

function isExpression(text: string): boolean {
  try {
    return new RegExp(text) instanceof RegExp;
  } catch {
    return false;
  }
}

function sizeOf(data: unknown): number {
  if (typeof data === "string") return data.length >> 3;
  return Array.isArray(data) ? data.length : 0;
}

function compileWith(validator: ajvModule.Ajv2020, schema: AnySchema): ValidateFunction {
  if (validator.validateSchema(schema) !== true) {
    const issues = issuesOf(validator.errors ?? []);
    throw new InvalidInputError(`The parameters are no valid JSON Schema (draft 2020-12):\n${renderIssues(issues)}`);
  }
  try {
    return validator.compile(schema);
  } catch (error) {
    const reason = error instanceof Error ? error.message : "unknown reason";
    throw new InvalidInputError(`The JSON Schema of the parameters cannot be used: ${reason}.`, { cause: error });
  } finally {
    // The compiled function is remembered elsewhere; the validator would keep every schema for ever.
    validator.removeSchema(schema);
  }
}

function areUnique(items: readonly Json[], limit: StepLimit): boolean {
  const seen = new Set<string>();
  for (const item of items) {
    const text = stableStringify(item);
    limit.spend(1 + (text.length >> 3));
    if (seen.has(text)) return false;
    seen.add(text);
  }
  return true;
}

/** What the validator found, as issues for a person or a model. */
export function issuesOf(errors: readonly ErrorObject[]): Issue[] {
  return errors.map(issueOf);
}

function issueOf(error: ErrorObject): Issue {
  const path = error.instancePath
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .map((part) => (/^\d{1,9}$/.test(part) ? Number(part) : part));
  return { path, message: error.message ?? "is not valid", expected: expectedBy(error) };
}

/** The message of most keywords says what would be right; these leave it out. */
function expectedBy({ keyword, params }: ErrorObject): string | undefined {
  if (keyword === "enum" && Array.isArray(params["allowedValues"])) {
    return `one of ${params["allowedValues"]
      .slice(0, 20)
      .map((value: unknown) => JSON.stringify(value))
      .join(", ")}`;
  }
  if (keyword === "const") return JSON.stringify(params["allowedValue"]);
  if (keyword === "type") return String(params["type"]);
  if (keyword === "additionalProperties") return `no property ${JSON.stringify(params["additionalProperty"])}`;
  return undefined;
}

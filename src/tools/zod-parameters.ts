import { z } from "zod";
import { toJson } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { JsonObject } from "../state/index.ts";
import { type Issue, renderIssues } from "./issues.ts";
import type { Parameters, ParsedArguments } from "./parsed-arguments.ts";

/** Parameters given as a zod schema. Throws `InvalidInputError` when JSON Schema cannot say what it says. */
export function zodParameters(schema: z.ZodType): Parameters {
  return { jsonSchema: jsonSchemaOf(schema), check: (value) => check(schema, value) };
}

function jsonSchemaOf(schema: z.ZodType): JsonObject {
  try {
    const { $schema: _ignored, ...jsonSchema } = z.toJSONSchema(schema, { io: "input" });
    return JSON.parse(JSON.stringify(jsonSchema)) as JsonObject;
  } catch (error) {
    const reason = error instanceof Error ? error.message : "unknown reason";
    throw new InvalidInputError(
      `The parameters cannot be shown to a model: ${reason}. Use types that JSON has, for instance z.iso.datetime() for a date.`,
      { cause: error },
    );
  }
}

function check(schema: z.ZodType, value: unknown): ParsedArguments {
  let result: z.ZodSafeParseResult<unknown>;
  try {
    result = schema.safeParse(value);
  } catch (error) {
    // Refinements and transforms are the author's code: they may throw, or be asynchronous.
    const reason = error instanceof Error ? error.message : "its check threw";
    return { ok: false, message: `they could not be checked (${reason.slice(0, 200)})` };
  }
  if (!result.success) return { ok: false, message: renderIssues(result.error.issues.flatMap(issuesOf)) };
  const json = toJson(result.data);
  if (json.ok) return { ok: true, value: result.data, json: json.json };
  const { path, message } = json.issue;
  const transformed = { path, message: `the tool's own transform gave something else than JSON: ${message}` };
  return { ok: false, message: `${renderIssues([transformed])}\nThis is a fault of the tool, not of the arguments.` };
}

function issuesOf(issue: z.core.$ZodIssue): Issue[] {
  const path = issue.path.map((part) => (typeof part === "number" ? part : String(part)));
  if (issue.code !== "invalid_union") return [{ path, ...messageOf(issue.message) }];
  // A union's own message says nothing: what each alternative would have wanted does.
  const alternatives = issue.errors
    .flat()
    .slice(0, 5)
    .map((inner) => {
      const { message, expected } = messageOf(inner.message);
      return `${inner.path.length === 0 ? "" : `${inner.path.map(String).join(".")}: `}${expected ?? message}`;
    });
  if (alternatives.length === 0) return [{ path, message: "fits none of the alternatives" }];
  return [{ path, message: "fits none of the alternatives", expected: alternatives.join(", or ") }];
}

/** Takes "Invalid input: expected string, received number" apart. */
function messageOf(text: string): { readonly message: string; readonly expected?: string | undefined } {
  const parts = /^(.*?): expected (.*?)(?:, received (.*))?$/s.exec(text);
  if (parts === null) return { message: text };
  const [, message = text, expected, received] = parts;
  if (received === "undefined") return { message: "is missing", expected };
  return { message: received === undefined ? message : `${message}: received ${received}`, expected };
}

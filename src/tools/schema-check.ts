import { type OutputUnit, type Schema, validate } from "@cfworker/json-schema";
import type { Issue } from "./parsed-arguments.ts";
import type { SchemaDocument } from "./schema-document.ts";
import { nextTask, withinLimit } from "./time-limit.ts";

/** Whether the value fits a schema of the document. Call it inside `withinLimit`. */
export function fits(document: SchemaDocument, schema: Schema | boolean, value: unknown): boolean {
  return validate(value, schema, document.draft, document.targets).valid;
}

/** Mistakes in a value that was parsed from JSON; empty if it fits. Throws `TooSlowError`, and `RangeError` if the stack overflows. */
export async function issuesOf(document: SchemaDocument, value: unknown): Promise<readonly Issue[]> {
  const errorsOf = (isShort: boolean): readonly OutputUnit[] =>
    withinLimit(() => validate(value, document.root, document.draft, document.targets, isShort).errors);
  const first = errorsOf(true);
  if (first.length === 0) return [];
  await nextTask();
  let all: readonly OutputUnit[];
  try {
    all = errorsOf(false);
  } catch {
    // The check for all mistakes took too long: report the first ones only.
    all = first;
  }
  return all.filter(({ keyword }) => !wrappers.has(keyword)).map((error) => issueOf(error, value));
}

/** Keywords whose errors are followed by more specific ones. */
const wrappers: ReadonlySet<string> = new Set([
  "$ref",
  "allOf",
  "properties",
  "patternProperties",
  "additionalProperties",
  "unevaluatedProperties",
  "items",
  "prefixItems",
  "additionalItems",
  "unevaluatedItems",
]);

function issueOf({ instanceLocation, keyword, error }: OutputUnit, value: unknown): Issue {
  const path: (string | number)[] = [];
  let at = value;
  for (const part of instanceLocation.split("/").slice(1)) {
    const key = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
    path.push(Array.isArray(at) ? Number(key) : key);
    at = (at as Readonly<Record<string, unknown>> | undefined)?.[key];
  }
  return { path, message: keyword === "false" ? "is not allowed" : error.replace(/^Instance /, "") };
}

import type { z } from "zod";
import { deepFreeze, renderPath, toJson, wordsOfThrown } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { Json, JsonObject } from "../state/index.ts";
import { writtenByZod } from "../tools/index.ts";

/** The schema of an answer, ready for the model and for checking the answer. */
export interface OutputSchema {
  /** As it is sent to the model. */
  readonly jsonSchema: JsonObject;
  /** Reads an answer. Runs the schema's own refinements and transforms; never rejects. */
  parse(text: string): Promise<ParsedOutput>;
}

export type ParsedOutput =
  | { readonly ok: true; readonly value: Json }
  /** The mistakes, in words for the model. */
  | { readonly ok: false; readonly issues: string };

/** How many issues of one answer are reported. */
const ISSUES_TOLD = 5;

/** Throws `InvalidInputError` when the schema has no JSON form. */
export function outputSchemaOf(agent: string, schema: z.ZodType): OutputSchema {
  let shape: JsonObject;
  try {
    shape = writtenByZod(schema) as JsonObject;
  } catch (error) {
    throw new InvalidInputError(`agent "${agent}": output has no JSON Schema: ${String(error)}`, { cause: error });
  }
  return deepFreeze({ jsonSchema: shape, parse: (text: string) => parse(schema, text) });
}

async function parse(schema: z.ZodType, text: string): Promise<ParsedOutput> {
  const json = jsonIn(text);
  if (json === undefined) return { ok: false, issues: "it is not JSON" };
  try {
    const parsed = await schema.safeParseAsync(json.value);
    if (!parsed.success) return { ok: false, issues: issuesOf(parsed.error) };
    const value = toJson(parsed.data);
    if (value.ok) return { ok: true, value: value.json };
    const { path, message } = value.issue;
    return { ok: false, issues: `what it was turned into is no JSON: ${renderPath(path)}: ${message}` };
  } catch (error) {
    return { ok: false, issues: `it could not be checked: ${wordsOfThrown(error)}` };
  }
}

/** The JSON of an answer, also inside a fenced block. */
function jsonIn(text: string): { readonly value: unknown } | undefined {
  const fenced = /^\s*```(?:json)?\s*\n([\s\S]*?)\n?```\s*$/.exec(text);
  try {
    return { value: JSON.parse(fenced?.[1] ?? text) };
  } catch {
    return undefined;
  }
}

function issuesOf({ issues }: z.ZodError): string {
  const told = issues.slice(0, ISSUES_TOLD).map(({ path, message }) => {
    return path.length === 0 ? message : `${path.map(String).join(".")}: ${message}`;
  });
  const more = issues.length - told.length;
  return more > 0 ? `${told.join("; ")}; and ${more} more` : told.join("; ");
}

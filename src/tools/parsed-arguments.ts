import { parseJson, type Path, renderPath } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { Json, JsonObject } from "../state/index.ts";

/** A model's arguments after parsing: the values for `execute` and for the journal, or an error message for the model. */
export type ParsedArguments =
  | {
      readonly ok: true;
      /** For `execute`: the output of the zod schema, with transforms applied. */
      readonly value: unknown;
      /** For the journal, for display and for approval. */
      readonly json: Json;
    }
  | {
      readonly ok: false;
      /** For the model: the mistakes, their paths, and the expected values. */
      readonly message: string;
      /** The mistakes by field, if fields are invalid; at most 20. */
      readonly issues?: readonly { readonly path: string; readonly message: string }[] | undefined;
    };

export type Refusal = Extract<ParsedArguments, { readonly ok: false }>;

/** Repairs a value that does not fit its schema; returns the same value if nothing is changed. */
export type Repair = (value: unknown) => Promise<unknown>;

/** A tool's parameters, independent of how they were declared. */
export interface Parameters {
  /** For the model: a JSON Schema whose root is an object. */
  readonly jsonSchema: JsonObject;
  /** Fragments of a foreign schema that are shown to the model but not checked, each with its path and the reason. Default: none. */
  readonly unchecked?: readonly string[] | undefined;
  /** Checks a value that was parsed from JSON, with the schema's own code. Never rejects. */
  check(value: unknown): Promise<ParsedArguments>;
  readonly repair: Repair;
}

/** One mistake in a value, for a person or a model. */
export interface Issue {
  readonly path: Path;
  readonly message: string;
  /** The expected value, if known. */
  readonly expected?: string | undefined;
}

const maxIssues = 20;
const maxLineLength = 300;

/** A refusal for the model with one line per issue, `path: message (expected …)`; from the 21st on, issues are only counted. */
export function unfit(given: readonly Issue[]): Refusal {
  const issues = given.slice(0, maxIssues).map(({ path, message, expected }) => {
    const line = `${message}${expected === undefined ? "" : ` (expected ${expected})`}`;
    const isLong = line.length > maxLineLength;
    return { path: renderPath(path), message: isLong ? `${line.slice(0, maxLineLength)}…` : line };
  });
  const lines = issues.map(({ path, message }) => `${path}: ${message}`);
  if (given.length > maxIssues) lines.push(`and ${given.length - maxIssues} more`);
  return { ok: false, message: lines.join("\n"), issues };
}

/** How many times a text may be JSON-encoded. */
const MOST_ENCODINGS = 3;

/**
 * The value of a JSON text that was encoded up to three times. `undefined` if it is not JSON or is a string, and for integers that would
 * lose digits.
 */
export function jsonIn(text: string): unknown {
  let value: unknown = text;
  for (let round = 0; round < MOST_ENCODINGS && typeof value === "string"; round += 1) {
    try {
      value = parseJson(value, { what: "the text" });
    } catch (error) {
      if (error instanceof InvalidInputError) return undefined;
      throw error;
    }
  }
  if (typeof value === "string" || (Number.isInteger(value) && !Number.isSafeInteger(value))) return undefined;
  return value;
}

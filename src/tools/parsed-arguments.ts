import { parseJson, type Path, renderPath } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { Json, JsonObject } from "../state/index.ts";

/** A model's arguments after parsing: the values for `execute` and for the journal, or an error message for the model. */
export type ParsedArguments =
  | {
      readonly ok: true;
      /** For `execute`: with a zod schema its output, transforms applied. */
      readonly value: unknown;
      /** For the journal, for display and for approval. */
      readonly json: Json;
    }
  | {
      readonly ok: false;
      /** For the model: the mistakes, their places, and what would be right. */
      readonly message: string;
      /** The same by field, where fields are to blame; at most 20. */
      readonly issues?: readonly { readonly path: string; readonly message: string }[] | undefined;
    };

export type Refusal = Extract<ParsedArguments, { readonly ok: false }>;

/** Reads a value again that does not fit its schema; gives the same value where nothing is to be changed. */
export type Repair = (value: unknown) => Promise<unknown>;

/** A tool's parameters, however they were declared. */
export interface Parameters {
  /** For the model: a JSON Schema whose root is an object. */
  readonly jsonSchema: JsonObject;
  /** Parts of a foreign schema that are shown to the model and not checked, each with its path and the reason. Default none. */
  readonly unchecked?: readonly string[] | undefined;
  /** Checks a value that was read from JSON, with the schema's own code. Never rejects. */
  check(value: unknown): Promise<ParsedArguments>;
  readonly repair: Repair;
}

/** One mistake in a value, for a person or a model. */
export interface Issue {
  readonly path: Path;
  readonly message: string;
  /** What would have been right, if that is known. */
  readonly expected?: string | undefined;
}

const maxIssues = 20;
const maxLineLength = 300;

/** Refuses a value: for the model one line per issue, `path: message (expected …)`; past 20 issues the rest is counted. */
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

/** How often a text may be encoded. */
const MOST_ENCODINGS = 3;

/**
 * The value of a JSON text that holds no text: encoded once, or up to three times. `undefined` for any other text, and for whole numbers
 * that would lose digits.
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

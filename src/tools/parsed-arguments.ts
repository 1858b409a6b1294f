import type { Json, JsonObject } from "../state/index.ts";

/** A model's arguments after parsing: what `execute` gets and what is journalled, or what the model is told. */
export type ParsedArguments =
  | {
      readonly ok: true;
      /** For `execute`: with a zod schema its output, transforms applied. */
      readonly value: unknown;
      /** What is journalled, shown and approved. */
      readonly json: Json;
    }
  | {
      readonly ok: false;
      /** For the model: what is wrong, where, and what would be right. */
      readonly message: string;
    };

/** A tool's parameters, however they were declared. */
export interface Parameters {
  /** For the model: a JSON Schema whose root is an object. */
  readonly jsonSchema: JsonObject;
  /** Parts of a foreign schema that only the model heeds, each with its place and the reason. Absent: none. */
  readonly unchecked?: readonly string[] | undefined;
  /** Checks a value that was read from JSON. Synchronous; never throws. */
  check(value: unknown): ParsedArguments;
}

import { z } from "zod";
import type { JsonObject } from "../../state/index.ts";

/** The dialect of all schemas that the command writes. */
export const DIALECT = "https://json-schema.org/draft/2020-12/schema";

/** The identifier of a schema; it is a name and leads nowhere. */
export function schemaId(name: string): string {
  return `urn:troupe:schema:${name}`;
}

/**
 * The JSON Schema of the values that the parser accepts. Objects are as open as in the parser; what JSON Schema cannot express, such as a
 * check by code, is left out.
 */
export function jsonSchemaFrom(schema: z.ZodType): JsonObject {
  const written = z.toJSONSchema(schema, {
    target: "draft-2020-12",
    io: "input",
    unrepresentable: "any",
    override: ({ jsonSchema }) => tidy(jsonSchema),
  });
  const { $schema: _dialect, ...content } = JSON.parse(JSON.stringify(written)) as JsonObject;
  return content;
}

/** Removes the parts that only concern JavaScript. */
function tidy(schema: z.core.JSONSchema.BaseSchema): void {
  const largest = Number.MAX_SAFE_INTEGER;
  if (schema.minimum === -largest) delete schema.minimum;
  if (schema.maximum === largest) delete schema.maximum;
  if (JSON.stringify(schema.propertyNames) === '{"type":"string"}') delete schema.propertyNames;
}

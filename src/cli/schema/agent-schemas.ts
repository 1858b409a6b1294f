import type { AgentDefinition } from "../../agents/index.ts";
import { contentSchema, type Json, type JsonObject } from "../../state/index.ts";
import { DIALECT, jsonSchemaFrom } from "./json-schemas.ts";

/** The schemas of one agent, as `troupe schema FILE` prints them. */
export interface AgentSchemas {
  readonly agent: string;
  /** The input of a turn. */
  readonly input: JsonObject;
  /** The typed answer; `null` if the answer is a text. */
  readonly output: JsonObject | null;
  /** The arguments of its tools, by their names. */
  readonly tools: Readonly<Record<string, JsonObject>>;
}

/** Schemas as the model and the callers of the agent see them, without the tools that the runtime adds, such as `read_artifact`. */
export function schemasOf({ name, output, tools }: AgentDefinition): AgentSchemas {
  return {
    agent: name,
    input: named(`${name}: input`, "The input of a turn.", jsonSchemaFrom(contentSchema)),
    output: output === null ? null : named(`${name}: output`, "The typed answer of a turn.", output.jsonSchema),
    tools: Object.fromEntries(
      tools.tools.map((tool) => [tool.name, named(`${name}: ${tool.name}`, tool.description, tool.jsonSchema)]),
    ),
  };
}

/** The schema's own title and description are kept. */
function named(title: string, description: string, schema: JsonObject): JsonObject {
  const { $schema = DIALECT, ...content } = schema as Readonly<Record<string, Json>>;
  return { $schema, title, description, ...content };
}

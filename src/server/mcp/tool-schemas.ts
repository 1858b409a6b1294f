import type { JsonObject, Json } from "../../state/index.ts";
import type { AgentTool } from "./served-agents.ts";

/** Maximum length of an input, in characters. */
const LONGEST_INPUT = 1_000_000;
const LONGEST_NAME = 255;

/** The arguments of an agent's tool. */
export interface AgentArguments {
  readonly input: string;
  readonly conversation?: string | undefined;
  readonly key?: string | undefined;
}

export const agentInputSchema: JsonObject = {
  type: "object",
  properties: {
    input: { type: "string", minLength: 1, maxLength: LONGEST_INPUT, description: "The message for the agent." },
    conversation: {
      type: "string",
      minLength: 1,
      maxLength: LONGEST_NAME,
      description:
        "A name that you choose for the conversation: calls with the same name continue it. Leave it out for a new conversation.",
    },
    key: {
      type: "string",
      pattern: `^[\\x21-\\x7e]{1,${LONGEST_NAME}}$`,
      description:
        "Idempotency key of the calling program, unique for each call: a repeated call with the same key and input returns the first call's turn. Leave it out unless you can repeat a call.",
    },
  },
  required: ["input"],
  additionalProperties: false,
};

export const turnInputSchema: JsonObject = {
  type: "object",
  properties: {
    turnId: { type: "string", minLength: 1, maxLength: 512, description: "The turnId of an earlier result." },
  },
  required: ["turnId"],
  additionalProperties: false,
};

/** The states of a turn for clients. `working`: it is queued or runs. */
export const turnStatuses = ["completed", "stopped", "failed", "working", "waiting"] as const;
export type ShownStatus = (typeof turnStatuses)[number];

/** The structured result of the tools. `output`: schema of the agent's validated answer, if it has one. */
export function turnOutputSchema(output: JsonObject | undefined): JsonObject {
  return {
    type: "object",
    properties: {
      status: {
        type: "string",
        enum: [...turnStatuses],
        description: "working: call turn_result to wait for the answer. waiting: a person has to decide first.",
      },
      turnId: { type: "string" },
      conversation: { type: "string", description: "Continues this conversation when passed to the agent's tool." },
      text: { type: "string", description: "The answer, or what the turn waits for." },
      output:
        output === undefined ? {} : { ...moved(output, "/properties/output"), description: "The validated answer." },
      stopReason: { type: "string", description: "Why the turn ended." },
      usage: {
        type: "object",
        description: "Spending of the turn and its subagents; cost in dollars, null if a price is unknown.",
        properties: {
          inputTokens: { type: "number" },
          outputTokens: { type: "number" },
          cost: { type: ["number", "null"] },
        },
        required: ["inputTokens", "outputTokens", "cost"],
      },
      requests: {
        type: "array",
        description: "The open requests of a waiting turn.",
        items: {
          type: "object",
          properties: { requestId: { type: "string" }, kind: { type: "string" }, prompt: { type: "string" } },
          required: ["requestId", "kind", "prompt"],
        },
      },
    },
    required: ["status", "turnId", "text"],
  };
}

export function outputSchemaOfTool({ definition }: AgentTool): JsonObject {
  return turnOutputSchema(definition.output?.jsonSchema);
}

/** Keywords whose values are data, not schemas. */
const dataKeywords: ReadonlySet<string> = new Set(["const", "enum", "default", "examples"]);
/** Keywords whose values are objects of schemas by name. */
const namedSchemas: ReadonlySet<string> = new Set(["properties", "patternProperties", "$defs", "definitions"]);

/** A schema moved to a pointer of another document: its references to itself follow. */
function moved(schema: JsonObject, pointer: string): JsonObject {
  const rest = Object.entries(schema).filter(([name]) => name !== "$schema");
  // A schema with its own id resolves its references itself.
  return typeof schema["$id"] === "string" ? Object.fromEntries(rest) : movedObject(Object.fromEntries(rest), pointer);
}

function movedObject(schema: JsonObject, pointer: string): JsonObject {
  return Object.fromEntries(
    Object.entries(schema).map(([name, value]) => {
      if (name === "$ref" && typeof value === "string" && /^#(?:\/|$)/.test(value)) {
        return [name, `#${pointer}${value.slice(1)}`];
      }
      if (dataKeywords.has(name)) return [name, value];
      if (namedSchemas.has(name) && isObject(value)) {
        return [name, Object.fromEntries(Object.entries(value).map(([key, one]) => [key, movedValue(one, pointer)]))];
      }
      return [name, movedValue(value, pointer)];
    }),
  );
}

function movedValue(value: Json, pointer: string): Json {
  if (Array.isArray(value)) return value.map((one: Json) => movedValue(one, pointer));
  return isObject(value) ? movedObject(value, pointer) : value;
}

function isObject(value: Json): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

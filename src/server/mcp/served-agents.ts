import type { AgentDefinition } from "../../agents/index.ts";
import { listRule, nameRule, type OptionsSchema, optionsRule, ruleOf } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";

/** An agent that is served as a tool. */
export interface McpServed {
  /** Must be a definition of the runtime. */
  readonly definition: AgentDefinition;
  /** What the agent does, for the models of clients. Default: a sentence with its name. */
  readonly description?: string | null | undefined;
  /**
   * Name of the tool: 1 to 64 letters, digits, `_` and `-`. Default: the definition's name, with `_` instead of other
   * characters.
   */
  readonly tool?: string | undefined;
}

/** An agent with the name and the description of its tool. */
export interface AgentTool {
  readonly name: string;
  readonly description: string;
  readonly definition: AgentDefinition;
}

/** The tools beside those of the agents. */
export const TURN_RESULT = "turn_result";
export const TURN_ABORT = "turn_abort";
const reserved: readonly string[] = [TURN_RESULT, TURN_ABORT];

const definitionRule = ruleOf(
  "an agent definition, the result of defineAgent()",
  (value) => typeof value === "object" && value !== null && "name" in value && "tools" in value && "limits" in value,
);

/** Names that the APIs of model providers accept for tools. */
const toolNameRule = ruleOf(
  "a name of 1 to 64 letters, digits, _ and -",
  (value) => typeof value === "string" && /^[\w-]{1,64}$/.test(value),
);

const servedSchema: OptionsSchema<McpServed> = {
  rules: {
    definition: definitionRule,
    description: (value, where) => (value === null ? undefined : nameRule(value, where)),
    tool: toolNameRule,
  },
  needed: ["definition"],
  instead: { name: "tool", agent: "definition" },
};
const servedRule = optionsRule<McpServed>(servedSchema);

/** A list of definitions, or of objects with a definition. */
export const agentsRule = listRule("a list of agent definitions, or of { definition, description }", (value, where) =>
  isBareDefinition(value) ? { definition: value } : servedRule(value, where),
);

function isBareDefinition(value: unknown): boolean {
  try {
    definitionRule(value, "");
    return true;
  } catch {
    return false;
  }
}

/** Throws `InvalidInputError` if two tools have the same name. */
export function agentTools(served: readonly McpServed[]): readonly AgentTool[] {
  const tools = served.map(({ definition, description, tool }) => ({
    name: tool ?? definition.name.replaceAll(/[^\w-]/g, "_"),
    description: description ?? `Asks the agent "${definition.name}" and returns its answer.`,
    definition,
  }));
  const names = [...reserved, ...tools.map(({ name }) => name)];
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice === undefined) return tools;
  const why = reserved.includes(twice) ? "is reserved for the server" : "is used twice";
  throw new InvalidInputError(
    `agents: the tool name "${twice}" ${why}; give another one: { definition, tool: "other_name" }`,
  );
}

/** Whether no tool of the agent changes anything, so that a client may call it freely. */
export function isReadOnly({ tools }: AgentDefinition): boolean {
  return tools.tools.every((tool) => "effect" in tool && tool.effect === "none");
}

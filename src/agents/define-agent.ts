import { shortHash, stableStringify } from "../base/index.ts";
import { limitsOf } from "../budget/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { registerHooks } from "../hooks/index.ts";
import type { JsonObject } from "../state/index.ts";
import { createToolRegistry, type ToolRegistry } from "../tools/index.ts";
import type { AgentDefinition, AgentOptions, AgentTool } from "./definition.ts";

export const DEFAULT_MAX_STEPS = 10;

/** Defines an agent. Throws `InvalidInputError` that names the field and what would be right. */
export function defineAgent(options: AgentOptions): AgentDefinition {
  const { name, model } = options;
  if (!/^[A-Za-z0-9_.-]{1,64}$/.test(name)) {
    throw new InvalidInputError(
      `an agent cannot be named ${JSON.stringify(name)}: use 1 to 64 letters, digits, "_", "-" and "."`,
    );
  }
  if (typeof model?.generate !== "function") {
    throw new InvalidInputError(
      `agent "${name}": model must be a LanguageModel, for instance openaiModel("gpt-5-mini") or offlineModel()`,
    );
  }
  const tools = createToolRegistry(options.tools ?? []);
  const grantedTools = tools.tools.map(({ name, kind, effect }) => ({ name, kind, effect }));
  const limits = { maxSteps: DEFAULT_MAX_STEPS, ...limitsOf(options.budget) };
  const instructions = options.instructions ?? "";
  return Object.freeze({
    name,
    model,
    instructions,
    tools,
    grantedTools,
    hooks: registerHooks(options.hooks, options.plugins ?? []),
    limits,
    maxOutputTokens: atLeastOne(name, "maxOutputTokens", options.maxOutputTokens),
    temperature: options.temperature,
    responseFormat: options.responseFormat,
    maxModelAttempts: atLeastOne(name, "maxModelAttempts", options.maxModelAttempts) ?? 3,
    maxConsecutiveToolFailures: atLeastOne(name, "maxConsecutiveToolFailures", options.maxConsecutiveToolFailures) ?? 3,
    price: options.price ?? null,
    maxMessages: atLeastOne(name, "maxMessages", options.maxMessages),
    ref: { name, hash: shortHash(stableStringify(describe(options, tools))) },
  });
}

function describe(options: AgentOptions, tools: ToolRegistry<AgentTool>): JsonObject {
  return {
    name: options.name,
    model: `${options.model.provider}/${options.model.name}`,
    instructions: typeof options.instructions === "string" ? options.instructions : "",
    tools: tools.tools.map(({ name, kind, description, effect, jsonSchema }) => ({
      name,
      kind,
      description,
      effect,
      jsonSchema,
    })),
    plugins: (options.plugins ?? []).map((plugin) => plugin.name),
  };
}

function atLeastOne(agent: string, field: string, value: number | undefined): number | undefined {
  if (value === undefined || (Number.isSafeInteger(value) && value >= 1)) return value;
  throw new InvalidInputError(`agent "${agent}": ${field} is ${String(value)}; use a whole number of at least 1`);
}

/** The definition and all that it can spawn, by name. Two different definitions of one name are refused. */
export function collectDefinitions(roots: readonly AgentDefinition[]): Map<string, AgentDefinition> {
  const found = new Map<string, AgentDefinition>();
  const visit = (definition: AgentDefinition): void => {
    const known = found.get(definition.name);
    if (known === definition) return;
    if (known) {
      throw new InvalidInputError(`two agents are named "${definition.name}"; give each definition its own name`);
    }
    found.set(definition.name, definition);
    for (const tool of definition.tools.tools) if (tool.kind === "subagent") visit(tool.definition);
  };
  for (const definition of roots) visit(definition);
  return found;
}

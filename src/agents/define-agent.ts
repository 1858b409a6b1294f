import { readFile } from "node:fs/promises";
import { shortHash, stableStringify } from "../base/index.ts";
import { limitsOf } from "../budget/index.ts";
import { fullHistory } from "../context/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { registerHooks } from "../hooks/index.ts";
import { checkedPrice } from "../model/index.ts";
import type { JsonObject } from "../state/index.ts";
import {
  controlTools,
  createToolRegistry,
  internalTools,
  type RegisteredTool,
  type ToolRegistry,
} from "../tools/index.ts";
import { autoCompactOf } from "./auto-compact.ts";
import type { AgentDefinition, AgentOptions, AgentTool } from "./definition.ts";
import { checkedHistory } from "./context-checks.ts";
import { modelOf } from "./model-by-name.ts";
import { outputSchemaOf } from "./output-schema.ts";

export const DEFAULT_MAX_STEPS = 10;

/** Defines an agent. Throws `InvalidInputError` that names the field and what would be right. */
export function defineAgent(options: AgentOptions): AgentDefinition {
  const { name } = options;
  if (!/^[A-Za-z0-9_.-]{1,64}$/.test(name)) {
    throw new InvalidInputError(
      `an agent cannot be named ${JSON.stringify(name)}: use 1 to 64 letters, digits, "_", "-" and "."`,
    );
  }
  const model = modelOf(name, options.model);
  const history = checkedHistory(name, options.history ?? fullHistory());
  const plugins = options.plugins ?? [];
  const given = [
    ...(options.tools ?? []),
    ...plugins.flatMap(({ name: plugin, tools: own = [] }) => own.map((tool) => toolOfPlugin(plugin, tool))),
  ];
  const tools = createToolRegistry([
    ...given,
    ...(given.some(isBackground) ? controlTools : []),
    ...(history.internalTools ? internalTools : []),
  ]);
  const grantedTools = tools.tools.map((tool) => {
    const { name, kind, effect } = tool;
    return { name, kind, effect, ...queueOf(tool) };
  });
  const limits = { maxSteps: DEFAULT_MAX_STEPS, ...limitsOf(options.budget) };
  const instructions = instructionsOf(name, options.instructions);
  const output = options.output ? outputSchemaOf(name, options.output) : null;
  const answers = output ? ({ type: "json_schema", name: "output", schema: output.jsonSchema } as const) : undefined;
  return Object.freeze({
    name,
    model,
    instructions,
    tools,
    grantedTools,
    hooks: registerHooks(options.hooks, plugins),
    limits,
    maxOutputTokens: atLeastOne(name, "maxOutputTokens", options.maxOutputTokens),
    temperature: options.temperature,
    responseFormat: answers ?? options.responseFormat,
    maxModelAttempts: atLeastOne(name, "maxModelAttempts", options.maxModelAttempts) ?? 3,
    maxConsecutiveToolFailures: atLeastOne(name, "maxConsecutiveToolFailures", options.maxConsecutiveToolFailures) ?? 3,
    price: options.price === undefined ? null : checkedPrice(`agent "${name}": price`, options.price),
    maxMessages: atLeastOne(name, "maxMessages", options.maxMessages),
    history,
    autoCompact: autoCompactOf(name, options.autoCompact),
    output,
    ref: { name, hash: shortHash(stableStringify(describe(options, { model, tools, history, output }))) },
  });
}

/** Whether the tool starts agents that go on by themselves. */
export function isBackground(tool: AgentTool): boolean {
  return tool.kind === "subagent" && tool.background !== null;
}

/** A plugin brings tools of any kind; what is none is told at once. */
function toolOfPlugin(plugin: string, tool: RegisteredTool): AgentTool {
  if (tool.kind === "function" || tool.kind === "subagent" || tool.kind === "client") return tool as AgentTool;
  throw new InvalidInputError(
    `plugin "${plugin}": its tool "${tool.name}" is of kind "${tool.kind}"; make it with defineTool, clientTool, askUser or subagent`,
  );
}

function instructionsOf(agent: string, given: AgentOptions["instructions"]): AgentDefinition["instructions"] {
  if (given === undefined || typeof given === "string" || typeof given === "function") return given ?? "";
  const { file } = given;
  return async () => {
    try {
      return await readFile(file, "utf8");
    } catch (error) {
      throw new InvalidInputError(`agent "${agent}": its instructions cannot be read: ${String(error)}`, {
        cause: error,
      });
    }
  };
}

interface Described extends Pick<AgentDefinition, "model" | "history" | "output"> {
  readonly tools: ToolRegistry<AgentTool>;
}

function describe(options: AgentOptions, { model, tools, history, output }: Described): JsonObject {
  return {
    name: options.name,
    model: `${model.provider}/${model.name}`,
    history: history.name,
    output: output?.jsonSchema ?? null,
    instructions: typeof options.instructions === "string" ? options.instructions : "",
    tools: tools.tools.map((tool) => {
      const { name, kind, description, effect, jsonSchema } = tool;
      return { name, kind, description, effect, jsonSchema, ...queueOf(tool) };
    }),
    plugins: (options.plugins ?? []).map((plugin) => plugin.name),
  };
}

function queueOf(tool: AgentTool): { queue?: string } {
  return tool.kind === "function" && tool.queue !== undefined ? { queue: tool.queue } : {};
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

import { shortHash, stableStringify } from "../base/index.ts";
import { type Budget, type Limits, limitsOf, type Price } from "../budget/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { type HookRegistry, type Hooks, type Plugin, registerHooks } from "../hooks/index.ts";
import type { LanguageModel } from "../model/index.ts";
import type { DefinitionRef, GrantedTool, JsonObject, ResponseFormat } from "../state/index.ts";
import { createToolRegistry, type Tool, type ToolRegistry } from "../tools/index.ts";
import type { SubagentTool } from "./subagent.ts";

/** A tool of any kind, as an agent has it. */
export type AgentTool = Tool<never> | SubagentTool;

/** What a function for instructions knows; its result is journalled once per turn. */
export interface InstructionsContext {
  readonly agentId: string;
  readonly turnId: string;
  readonly actorId: string | null;
  readonly metadata: JsonObject;
}

export interface AgentOptions {
  /** Letters, digits, `_`, `-` and `.`; 1 to 64 characters. */
  readonly name: string;
  readonly model: LanguageModel;
  /** The system prompt: a text, or a function that gives one. Default: none. */
  readonly instructions?: string | ((context: InstructionsContext) => string | Promise<string>) | undefined;
  readonly tools?: readonly AgentTool[] | undefined;
  readonly hooks?: Hooks | undefined;
  readonly plugins?: readonly Plugin[] | undefined;
  /** Limits of each turn. `maxSteps` is 10 where none is given (row L13). */
  readonly budget?: Budget | undefined;
  /** The most one model call may generate. Default: 4,096 where a limit on tokens or cost binds, else the model's own. */
  readonly maxOutputTokens?: number | undefined;
  readonly temperature?: number | undefined;
  readonly responseFormat?: ResponseFormat | undefined;
  /** Attempts of one model call, the first included. Default 3. */
  readonly maxModelAttempts?: number | undefined;
  /** Rounds in a row in which every call failed, after which the turn fails. Default 3 (row L13). */
  readonly maxConsecutiveToolFailures?: number | undefined;
  /** Dollars per million tokens; needed where `maxCost` binds. */
  readonly price?: Price | undefined;
  /** Only the newest so many messages go to the model. Default: all. */
  readonly maxMessages?: number | undefined;
}

/** An agent as code defines it; it holds no state. Made by `defineAgent`. */
export interface AgentDefinition {
  readonly name: string;
  readonly model: LanguageModel;
  readonly instructions: NonNullable<AgentOptions["instructions"]>;
  readonly tools: ToolRegistry<AgentTool>;
  readonly grantedTools: readonly GrantedTool[];
  readonly hooks: HookRegistry;
  readonly limits: Limits;
  readonly maxOutputTokens: number | undefined;
  readonly temperature: number | undefined;
  readonly responseFormat: ResponseFormat | undefined;
  readonly maxModelAttempts: number;
  readonly maxConsecutiveToolFailures: number;
  readonly price: Price | null;
  readonly maxMessages: number | undefined;
  /** Name, and hash of what shapes its behaviour: a turn that goes on under another hash is warned about. */
  readonly ref: DefinitionRef;
}

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

import { deepFreeze, describeValue, optionsOf, reading, stableStringify } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { calledModels, compositionOf, type LanguageModel, modelOf } from "../model/index.ts";
import { limitsOf, type Price } from "../budget/index.ts";
import { fullHistory, type HistoryCompiler, isOwnCompiler, summarize } from "../context/index.ts";
import {
  hookCountsOf,
  type Plugin,
  pluginsOf,
  registerForgets,
  type RegisteredGuards,
  registerGuards,
  registerHooks,
} from "../hooks/index.ts";
import {
  assertToolOf,
  type DefinitionContent,
  hashOfDefinition,
  settingsIn,
  type StoredDefinition,
} from "../state/index.ts";
import { artifactTool, controlTools, createToolRegistry, internalTools, type ValueSchema } from "../tools/index.ts";
import { definitionOptions, toolRule } from "./definition-options.ts";
import type {
  AgentDefinition,
  AgentOptions,
  AgentTool,
  AutoCompact,
  AutoCompactOptions,
  OutputOf,
  SubagentTool,
} from "./definition.ts";
import { instructionsOf, withPlugins } from "./instructions.ts";
import { outputSchemaOf } from "./output-schema.ts";

export const DEFAULT_MAX_STEPS = 10;

/** Defines an agent. Throws `InvalidInputError` with the name of the wrong field and what is expected. */
export function defineAgent<const Schema extends ValueSchema = ValueSchema>(
  given: AgentOptions<Schema>,
): AgentDefinition<OutputOf<Schema>> {
  const name = nameOf(given);
  const options = optionsOf<AgentOptions>(given, `agent "${name}"`, definitionOptions);
  return reading(`agent "${name}"`, () => made(name, options) as AgentDefinition<OutputOf<Schema>>);
}

function nameOf(given: AgentOptions): string {
  const name: unknown = reading("defineAgent()", () => given?.name);
  if (typeof name === "string" && /^[A-Za-z0-9_.-]{1,64}$/.test(name)) return name;
  if (typeof given !== "object" || given === null) {
    throw new InvalidInputError(`defineAgent() expects a definition { name, model, … }, not ${describeValue(given)}`);
  }
  const shown = name === undefined ? "an agent needs a name" : `an agent cannot be named ${describeName(name)}`;
  throw new InvalidInputError(`${shown}: use 1 to 64 letters, digits, "_", "-" and "."`);
}

function describeName(name: unknown): string {
  return typeof name === "string" ? JSON.stringify(name.slice(0, 80)) : describeValue(name);
}

function made(name: string, options: AgentOptions): AgentDefinition {
  const of = `agent "${name}"`;
  const model = reading(`${of}: model`, () => modelOf(`${of}: model`, options.model));
  assertPriceFits(of, model, options.price);
  const history = options.history ?? fullHistory();
  const plugins = pluginsOf(options.plugins ?? []);
  const given = [
    ...(options.tools ?? []),
    ...plugins.flatMap(({ name: plugin, tools: own = [] }) =>
      own.map((tool, index) => toolOfPlugin(plugin, tool, index)),
    ),
  ];
  const tools = createToolRegistry<AgentTool>(
    [...given, ...(given.some(isBackground) ? controlTools : []), ...contextTools(history)],
    given.length > 0 || options.clientTools ? [artifactTool] : [],
  );
  const grantedTools = tools.tools.map(grantedToolOf);
  const toolNames = tools.definitions().map((tool) => tool.name);
  assertToolOf(options, toolNames, `${of}: toolChoice`);
  const limits = { maxSteps: DEFAULT_MAX_STEPS, ...limitsOf(options.budget) };
  const instructions = withPlugins(instructionsOf(name, options.instructions), plugins);
  const output = options.output ? outputSchemaOf(name, options.output) : null;
  const answers = output ? ({ type: "json_schema", name: "output", schema: output.sentSchema } as const) : undefined;
  const responseFormat = answers ?? structuredClone(options.responseFormat);
  const maxModelAttempts = options.maxModelAttempts ?? 3;
  const maxConsecutiveToolFailures = options.maxConsecutiveToolFailures ?? 3;
  const autoCompact = autoCompactOf(options.autoCompact);
  const hooks = reading(`${of}: hooks`, () => registerHooks(options.hooks, plugins));
  const guards = registerGuards(plugins);
  const forgets = registerForgets(options.plugins ?? [], plugins);
  for (const tool of tools.tools) if (tool.kind === "subagent") assertGuarded(name, guards, tool.definition);
  const hookCounts = hookCountsOf(hooks);
  deepFreeze([grantedTools, limits, responseFormat, hookCounts]);
  const stored = storedOf({
    name,
    model,
    instructions,
    tools,
    history,
    autoCompact,
    output,
    responseFormat,
    limits,
    maxModelAttempts,
    maxConsecutiveToolFailures,
    options,
    plugins,
  });
  return Object.freeze({
    name,
    model,
    instructions,
    tools,
    grantedTools,
    hooks,
    hookCounts,
    guards,
    forgets,
    limits,
    maxOutputTokens: options.maxOutputTokens,
    temperature: options.temperature,
    stopSequences: options.stopSequences,
    reasoningEffort: options.reasoningEffort,
    toolChoice: options.toolChoice,
    providerOptions: options.providerOptions,
    responseFormat,
    maxModelAttempts,
    maxConsecutiveToolFailures,
    price: options.price ?? null,
    maxMessages: options.maxMessages,
    history,
    autoCompact,
    output,
    clientTools: options.clientTools ?? false,
    ref: Object.freeze({ name, hash: stored.hash }),
    stored,
  });
}

/** Whether the tool starts children in the background. */
export function isBackground(tool: AgentTool): boolean {
  return tool.kind === "subagent" && tool.background !== null;
}

/** Throws `InvalidInputError` if a subagent lacks guards that must hold for it. */
function assertGuarded(name: string, guards: readonly RegisteredGuards[], child: AgentDefinition): void {
  const missing = missingGuard(guards, child);
  if (missing === undefined) return;
  throw new InvalidInputError(
    `agent "${name}": its subagent "${child.name}" lacks the plugin "${missing}", whose guards must hold for subagents too; add the same plugin to it`,
  );
}

/** The plugin whose guards must hold for subagents and that the subagent lacks. */
export function missingGuard(
  guards: readonly RegisteredGuards[],
  child: Pick<AgentDefinition, "guards">,
): string | undefined {
  return guards.find((own) => own.guards.subagents === true && !child.guards.some((one) => one.guards === own.guards))
    ?.plugin;
}

/** A plugin may add tools of any kind; any other value is refused immediately. */
function toolOfPlugin(plugin: string, tool: unknown, index: number): AgentTool {
  return toolRule(tool, `plugin "${plugin}": tools[${index}]`) as AgentTool;
}

interface Parts
  extends Pick<
    AgentDefinition,
    | "name"
    | "model"
    | "instructions"
    | "tools"
    | "history"
    | "autoCompact"
    | "output"
    | "responseFormat"
    | "limits"
    | "maxModelAttempts"
    | "maxConsecutiveToolFailures"
  > {
  readonly options: AgentOptions;
  readonly plugins: readonly Plugin[];
}

/** All fields of a definition except code. */
function storedOf({
  model,
  instructions,
  tools,
  history,
  autoCompact,
  output,
  options,
  ...parts
}: Parts): StoredDefinition {
  const { deadlineAt: _moment, ...limits } = parts.limits;
  const { maxMessages, clientTools = false } = options;
  const content: DefinitionContent = {
    ...parts,
    model: modelSummary(model),
    instructions: typeof instructions === "string" ? instructions : null,
    tools: tools.tools.map(describeTool),
    onDemandTools: tools.onDemand.map(describeTool),
    history: history.name,
    autoCompact: autoCompact && { ...autoCompact, strategy: autoCompact.strategy.name },
    output: output?.jsonSchema ?? null,
    limits,
    plugins: parts.plugins.map((plugin) => plugin.name),
    maxMessages,
    ...settingsIn(options),
    clientTools,
  };
  return storedFrom(content);
}

/** The content and its hash. It is built as JSON because the stores keep it as JSON. */
export function storedFrom(content: DefinitionContent): StoredDefinition {
  const plain = JSON.parse(stableStringify(content)) as DefinitionContent;
  return deepFreeze({ hash: hashOfDefinition(plain), ...plain });
}

/** The fields of a model that the stores keep; no credentials. */
export function modelSummary(model: LanguageModel): DefinitionContent["model"] {
  const { provider, name, contextWindow } = model;
  if (!compositionOf(model)) return { provider, name, contextWindow };
  const models = calledModels(model).map((one) => ({
    provider: one.provider,
    name: one.name,
    contextWindow: one.contextWindow,
  }));
  return { provider, name, contextWindow, models };
}

/** One price cannot be that of several models. */
export function assertPriceFits(of: string, model: LanguageModel, price: Price | null | undefined): void {
  if (!price || !compositionOf(model)) return;
  const names = calledModels(model).map((one) => one.name);
  throw new InvalidInputError(
    `${of}: price is that of one model, but its model chooses among ${names.join(", ")}; give each its price with createRuntime({ prices })`,
  );
}

/** The fields of a granted tool that the journal keeps. */
export function grantedToolOf(tool: AgentTool): AgentDefinition["grantedTools"][number] {
  const { name, kind, effect } = tool;
  return { name, kind, effect, ...queueOf(tool) };
}

/** The fields of a tool that the stores keep. */
export function describeTool(tool: AgentTool): DefinitionContent["tools"][number] {
  const { name, kind, description, effect, jsonSchema } = tool;
  const deferred = isDeferred(tool) ? { deferred: true as const } : {};
  return { name, kind, description, effect, jsonSchema, ...queueOf(tool), ...deferred, ...handoverOf(tool) };
}

/** The tools on the agent's own context that its history needs. */
function contextTools(history: HistoryCompiler): readonly AgentTool[] {
  if (!history.internalTools) return [];
  // `elideResults` has no window that could be widened.
  const hasWindow = history.contextWindowSize !== undefined || !isOwnCompiler(history);
  return hasWindow ? internalTools : internalTools.filter(({ name }) => name !== "load_history");
}

function isDeferred(tool: AgentTool): boolean {
  return tool.kind === "function" && tool.deferred === true;
}

function handoverOf(tool: AgentTool): Pick<SubagentTool, "endsTurn" | "history"> {
  if (tool.kind !== "function" && tool.kind !== "subagent") return {};
  const history = tool.kind === "subagent" ? tool.history : undefined;
  return { ...(tool.endsTurn ? { endsTurn: true as const } : {}), ...(history ? { history } : {}) };
}

function queueOf(tool: AgentTool): { queue?: string } {
  return tool.kind === "function" && tool.queue !== undefined ? { queue: tool.queue } : {};
}

/** These definitions and all subagents they can spawn, by name. Two different definitions with one name are refused. */
export function collectDefinitions(roots: readonly AgentDefinition[]): Map<string, AgentDefinition> {
  const found = new Map<string, AgentDefinition>();
  const visit = (definition: AgentDefinition): void => {
    const known = found.get(definition.name);
    if (known === definition) return;
    if (known) {
      throw new InvalidInputError(`two agents are named "${definition.name}"; rename one of the definitions`);
    }
    found.set(definition.name, definition);
    for (const tool of definition.tools.tools) if (tool.kind === "subagent") visit(tool.definition);
  };
  for (const definition of roots) visit(definition);
  return found;
}

/** The options with their defaults; `null` if the conversation is never compacted. */
function autoCompactOf(options: boolean | AutoCompactOptions | undefined): AutoCompact | null {
  if (options === undefined || options === false) return null;
  const { strategy = summarize(), atPercent = 80, keep } = options === true ? {} : options;
  return Object.freeze({ strategy, atPercent, ...(keep === undefined ? {} : { keep }) });
}

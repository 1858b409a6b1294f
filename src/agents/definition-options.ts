import {
  anyRule,
  describeValue,
  type OptionsSchema,
  flagRule,
  hasMethods,
  listRule,
  type OptionRule,
  optionsRule,
  portNameRule,
  ruleOf,
  wholeNumberRule,
} from "../base/index.ts";
import { budgetRule } from "../budget/index.ts";
import type { CompactionStrategy, HistoryCompiler } from "../context/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { checkedPrice } from "../model/index.ts";
import { callSettingsRules, responseFormatSchema, take } from "../state/index.ts";
import { isValueSchema, valueSchemaKinds } from "../tools/index.ts";
import type { AgentOptions, AgentTool, AutoCompactOptions } from "./definition.ts";

const toolKinds: readonly unknown[] = [
  "function",
  "subagent",
  "client",
  "internal",
  "control",
] satisfies readonly AgentTool["kind"][];

/** Accepts only tools made by `defineTool` and similar functions; a plain object is refused. */
export const toolRule: OptionRule = (value, where) => {
  const { kind, name, parse, jsonSchema } = (typeof value === "object" && value !== null ? value : {}) as Readonly<
    Record<string, unknown>
  >;
  const isTool =
    toolKinds.includes(kind) &&
    typeof name === "string" &&
    typeof parse === "function" &&
    typeof jsonSchema === "object" &&
    jsonSchema !== null;
  if (isTool) return value;
  const ofKind = typeof kind === "string" ? `, of kind "${kind.slice(0, 64)}"` : "";
  throw new InvalidInputError(
    `${where} is ${describeValue(value)}${ofKind}; expected a tool made by defineTool, clientTool, askUser or subagent`,
  );
};

const atLeastOne = wholeNumberRule(1);

const compilerRule = ruleOf("a history compiler, for instance fullHistory() or windowHistory(20)", (value) =>
  hasMethods(value, ["compile"]),
);

const historyRule: OptionRule = (value, where) => {
  const { name, contextWindowSize, expandBy } = compilerRule(value, where) as HistoryCompiler;
  portNameRule(name, `${where}.name`);
  if (contextWindowSize !== undefined) atLeastOne(contextWindowSize, `${where}.contextWindowSize`);
  if (expandBy !== undefined) atLeastOne(expandBy, `${where}.expandBy`);
  return value;
};

const compactorRule = ruleOf("a compaction strategy, for instance summarize() or dropOldest()", (value) =>
  hasMethods(value, ["compact"]),
);

const strategyRule: OptionRule = (value, where) => {
  const { name } = compactorRule(value, where) as CompactionStrategy;
  portNameRule(name, `${where}.name`);
  return value;
};

const autoCompactOptions = optionsRule<AutoCompactOptions>({
  rules: {
    strategy: strategyRule,
    atPercent: ruleOf(
      "a number above 0 and at most 100",
      (value) => typeof value === "number" && value > 0 && value <= 100,
    ),
    keep: wholeNumberRule(1),
  },
  instead: { percent: "atPercent", threshold: "atPercent", maxMessages: "keep" },
});

/** The options that do not depend on the definition's name. Each is validated when the definition is made. */
export const definitionOptions = {
  rules: {
    name: anyRule,
    model: anyRule,
    instructions: anyRule,
    tools: listRule("a list of tools", toolRule),
    hooks: anyRule,
    plugins: listRule("a list of plugins", anyRule),
    budget: budgetRule,
    ...callSettingsRules,
    responseFormat: (value, where) => take(responseFormatSchema, value, where),
    maxModelAttempts: atLeastOne,
    maxConsecutiveToolFailures: atLeastOne,
    price: checkPrice,
    history: historyRule,
    maxMessages: atLeastOne,
    autoCompact: (value, where) =>
      typeof value === "object" && value !== null ? autoCompactOptions(value, where) : flagRule(value, where),
    clientTools: flagRule,
    output: ruleOf(valueSchemaKinds, isValueSchema),
  },
  needed: ["name", "model"] as const,
  instead: {
    systemPrompt: "instructions",
    system: "instructions",
    prompt: "instructions",
    id: "name",
    agentId: "createAgent({ agentId }) or runtime.agent(name, { agentId })",
    auth: "executeTurn(input, { auth })",
    ifBusy: "executeTurn(input, { ifBusy })",
    signal: "executeTurn(input, { signal })",
    timeoutMs: "budget: { maxSeconds }",
    llm: "model",
    functions: "tools",
    subagents: "tools: [subagent(…)]",
    agents: "tools: [subagent(…)]",
    limits: "budget",
    maxSteps: "budget: { maxSteps }",
    maxTurns: "budget: { maxSteps }",
    settings: "temperature, maxOutputTokens, reasoningEffort and so on, each as an option",
    stop: "stopSequences",
    effort: "reasoningEffort",
    maxTokens: "maxOutputTokens, or budget: { maxTokens }",
    maxCost: "budget: { maxCost }",
    maxSeconds: "budget: { maxSeconds }",
    timeout: "budget: { maxSeconds }",
    schema: "output",
    outputSchema: "output",
    middleware: "hooks",
    retries: "maxModelAttempts",
    maxRetries: "maxModelAttempts",
    memory: "history",
    store: "createAgent({ stores }) or createRuntime({ stores })",
    stores: "createAgent({ stores }) or createRuntime({ stores })",
  },
} satisfies OptionsSchema<AgentOptions>;

function checkPrice(value: unknown, where: string): unknown {
  return checkedPrice(where, value);
}

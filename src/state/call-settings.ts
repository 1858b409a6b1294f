import {
  describeValue,
  listRule,
  type OptionRule,
  oneOfRule,
  optionsRule,
  type OptionsSchema,
  recordRule,
  ruleOf,
  wholeNumberRule,
} from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { JsonObject } from "./json.ts";
import {
  type ProviderOptions,
  type ReasoningEffort,
  reasoningEfforts,
  type ToolChoice,
  toolChoices,
} from "./model-call.ts";
import { takeObject } from "./take.ts";

/** Settings of a model call. Each one that is absent is left to the next wider scope: the turn, the definition, the provider. */
export interface CallSettings {
  /** Sampling temperature, 0 or more. Default: the provider's. */
  readonly temperature?: number | undefined;
  /** Maximum number of tokens to generate, including reasoning. Default: the model's own limit, or what a budget allows. */
  readonly maxOutputTokens?: number | undefined;
  /** Texts at which the answer ends; they are not part of it. `[]` for none. Default: none. */
  readonly stopSequences?: readonly string[] | undefined;
  /**
   * How much the model thinks before it answers. Providers differ in the values that they accept. It changes no reservation: thoughts
   * count as output, within `maxOutputTokens`. Default: the provider's.
   */
  readonly reasoningEffort?: ReasoningEffort | undefined;
  /**
   * Whether tools may be called (`auto`), must not (`none`) or must be called (`required`, or a certain one with `{ tool: name }`).
   * A definition or a turn can only force a call in the first step, since a turn whose steps all call tools would never end. Default:
   * `auto`.
   */
  readonly toolChoice?: ToolChoice | undefined;
  /**
   * Fields of the provider, by its name: `{ openai: { service_tier: "flex" } }`. They are stored, so they must hold no secrets.
   * Default: none.
   */
  readonly providerOptions?: ProviderOptions | undefined;
}

/** Longest list of stop sequences, and the longest one in characters. Providers allow fewer. */
const MOST_STOP_SEQUENCES = 64;
const LONGEST_STOP_SEQUENCE = 1_000;
/** Longest name of a tool in `toolChoice`. */
const LONGEST_NAME = 1_000;
/** Bounds of the options of a provider, which are stored with each turn that sets them. */
const providerBounds = { maxDepth: 16, maxSize: 100_000 };

const stopSequence = ruleOf(
  `a text of 1 to ${LONGEST_STOP_SEQUENCE} characters`,
  (value) => typeof value === "string" && value !== "" && value.length <= LONGEST_STOP_SEQUENCE,
);
const stopSequences = listRule("a list of texts", stopSequence);

const toolChoiceRule: OptionRule = (value, where) => {
  if ((toolChoices as readonly unknown[]).includes(value)) return value;
  const fields = typeof value === "object" && value !== null ? Object.entries(value) : [];
  const [[field, tool] = []] = fields;
  const isName = typeof tool === "string" && tool !== "" && tool.length <= LONGEST_NAME;
  if (fields.length === 1 && field === "tool" && isName) return Object.freeze({ tool });
  throw new InvalidInputError(
    `${where} is ${describeValue(value)}; expected "auto", "none", "required" or { tool: "name of a tool" }`,
  );
};

/** The rules of all settings, for functions that take them among their options. */
export const callSettingsRules = {
  temperature: ruleOf(
    "a number of at least 0",
    (value) => typeof value === "number" && Number.isFinite(value) && value >= 0,
  ),
  maxOutputTokens: wholeNumberRule(1),
  stopSequences: (value, where) => {
    const list = stopSequences(value, where) as readonly string[];
    if (list.length <= MOST_STOP_SEQUENCES) return list;
    throw new InvalidInputError(`${where} has ${list.length} texts; expected at most ${MOST_STOP_SEQUENCES}`);
  },
  reasoningEffort: oneOfRule(...reasoningEfforts),
  toolChoice: toolChoiceRule,
  providerOptions: recordRule("an object of options by the names of providers", (value, where) =>
    takeObject(value, where, providerBounds),
  ),
} satisfies OptionsSchema<CallSettings>["rules"];

/** The rule of an option that holds settings. */
export const callSettingsRule: OptionRule = optionsRule<CallSettings>({
  rules: callSettingsRules,
  instead: {
    maxTokens: "maxOutputTokens",
    stop: "stopSequences",
    effort: "reasoningEffort",
    reasoning: "reasoningEffort",
    model: "defineAgent({ model })",
    responseFormat: "defineAgent({ responseFormat })",
    output: "defineAgent({ output })",
  },
});

/** The settings among the fields of a definition or a request; absent ones are left out. */
export function settingsIn(given: CallSettings): CallSettings {
  const names = Object.keys(callSettingsRules) as (keyof CallSettings)[];
  return Object.fromEntries(names.flatMap((name) => (given[name] === undefined ? [] : [[name, given[name]]])));
}

/** Later settings replace earlier ones; the options of a provider are merged field by field. */
export function mergedSettings(...scopes: readonly (CallSettings | undefined)[]): CallSettings {
  let merged: CallSettings = {};
  for (const scope of scopes) {
    if (scope === undefined) continue;
    const own = settingsIn(scope);
    const options = mergedOptions(merged.providerOptions, own.providerOptions);
    merged = { ...merged, ...own, ...(options === undefined ? {} : { providerOptions: options }) };
  }
  return merged;
}

/** The options of each provider, those of `later` over those of `earlier`. */
export function mergedOptions(
  earlier: ProviderOptions | undefined,
  later: ProviderOptions | undefined,
): ProviderOptions | undefined {
  if (earlier === undefined || later === undefined) return later ?? earlier;
  const merged: Record<string, JsonObject> = { ...earlier };
  for (const [provider, fields] of Object.entries(later)) merged[provider] = { ...merged[provider], ...fields };
  return merged;
}

/** The settings of one model call, from the widest scope to the narrowest. */
export interface SettingsScopes {
  readonly definition: CallSettings | undefined;
  readonly turn: CallSettings | undefined;
  /** By `beforeLlm` hooks for this call, in order. */
  readonly hooks: readonly (CallSettings | undefined)[];
  readonly step: number;
  /** Names of the tools in the request. */
  readonly tools: readonly string[];
}

/**
 * The settings of a call. A definition or a turn forces a tool call only in the first step, so that later steps can answer; a hook
 * decides for each call. A tool that this call does not have is not forced: a provider would refuse the request.
 */
export function settingsOfCall({ definition, turn, hooks, step, tools }: SettingsScopes): CallSettings {
  const wide = mergedSettings(definition, turn);
  const { toolChoice: choice, ...settings } = mergedSettings(
    step > 1 && isForced(wide.toolChoice) ? { ...wide, toolChoice: undefined } : wide,
    ...hooks,
  );
  const isMissing = typeof choice === "object" && !tools.includes(choice.tool);
  return choice === undefined || isMissing ? settings : { ...settings, toolChoice: choice };
}

function isForced(choice: ToolChoice | undefined): boolean {
  return choice === "required" || typeof choice === "object";
}

/** Throws `InvalidInputError` if the settings name a tool that is not among these. */
export function assertToolOf({ toolChoice }: CallSettings, names: readonly string[], where: string): void {
  if (typeof toolChoice !== "object" || names.includes(toolChoice.tool)) return;
  const known = names.length === 0 ? "there are no tools" : `the tools are ${names.join(", ")}`;
  throw new InvalidInputError(`${where}: there is no tool ${JSON.stringify(toolChoice.tool.slice(0, 80))}; ${known}`);
}

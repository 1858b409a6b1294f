import { describeValue, hasMethods, type OptionRule, reading, ruleOf } from "../base/index.ts";
import { InvalidInputError, NotFoundError } from "../errors/index.ts";
import type { Budget, Limits, Price } from "../budget/index.ts";
import type { CompactionStrategy, HistoryCompiler } from "../context/index.ts";
import type { HookRegistry, Hooks, Plugin, RegisteredForget, RegisteredGuards } from "../hooks/index.ts";
import type { LanguageModel } from "../model/index.ts";
import type {
  Background,
  DefinitionRef,
  GrantedTool,
  HookCounts,
  Json,
  JsonObject,
  ProviderOptions,
  ReasoningEffort,
  ResponseFormat,
  StoredDefinition,
  ToolChoice,
} from "../state/index.ts";
import type {
  ClientTool,
  ControlTool,
  InternalTool,
  ParsedArguments,
  Tool,
  ToolRegistry,
  ValueOf,
  ValueSchema,
} from "../tools/index.ts";
import type { OutputSchema } from "./output-schema.ts";

/** Limits on a subagent: its depth, the number of children and their tools. */
export interface SubagentPolicy {
  /** Deepest level of the tree at which the subagent may run; the root is 0. Default 3. */
  readonly maxDepth?: number | undefined;
  /** How many children this tool may spawn in one turn. Default: unlimited. */
  readonly maxChildren?: number | undefined;
  /**
   * How many children of one turn run at a time, at least 1; further ones wait. For background children the
   * limit covers all children of the agent, and one above it is refused. Default: unlimited.
   */
  readonly maxConcurrent?: number | undefined;
  /** Names of the tools that the child may use, among those of its definition. Default: all of them. */
  readonly allowedTools?: readonly string[] | undefined;
  /** Names of the tools that the child may not use. Default: none. */
  readonly deniedTools?: readonly string[] | undefined;
}

/** A subagent as a tool that the model sees. */
export interface SubagentTool {
  readonly kind: "subagent";
  readonly name: string;
  readonly description: string;
  readonly effect: "once";
  readonly jsonSchema: JsonObject;
  readonly definition: AgentDefinition;
  readonly limits: Limits;
  readonly policy: SubagentPolicy;
  /** The child starts with the conversation of its parent. */
  readonly history?: "conversation";
  /** A child that completes ends the turn with its answer. */
  readonly endsTurn?: true;
  /** Set if its children run in the background; `null` if the call waits for them. */
  readonly background: Background | null;
  readonly parse: (argumentsText: string) => Promise<ParsedArguments>;
  /** The child's prompt. */
  readonly inputOf: (args: Json) => string;
}

/** A tool of any kind that an agent can have. */
export type AgentTool = Tool<never> | SubagentTool | ClientTool | InternalTool | ControlTool;

/** The input of an instructions function; its result is journalled once per turn. */
export interface InstructionsContext {
  /** The agent whose turn begins. */
  readonly agentId: string;
  /** The turn that begins. */
  readonly turnId: string;
  /** The actor who started the turn; `null` if none was named. */
  readonly actorId: string | null;
  /** The metadata with which the agent was created. */
  readonly metadata: JsonObject;
}

export interface AutoCompactOptions {
  /** Default: `summarize()`. */
  readonly strategy?: CompactionStrategy | undefined;
  /** Compacts before the next model call once the context window is this full, in percent. Default 80. */
  readonly atPercent?: number | undefined;
  /** How many of the newest messages to leave unchanged. Default: the strategy's own number, 20. */
  readonly keep?: number | undefined;
}

export interface AutoCompact {
  readonly strategy: CompactionStrategy;
  readonly atPercent: number;
  /** How many of the newest messages to leave unchanged. Default: the strategy's own number. */
  readonly keep?: number;
}

/** What `defineAgent()` takes. */
export interface AgentOptions<Schema extends ValueSchema = ValueSchema> {
  /** Letters, digits, `_`, `-` and `.`; 1 to 64 characters. */
  readonly name: string;
  /** A model or a model name: `offline`, or any model of the OpenAI-compatible server that the environment configures. */
  readonly model: LanguageModel | string;
  /**
   * The system prompt: a text, a UTF-8 file of up to 1,000,000 bytes (checked when the agent is defined, read once per turn), or
   * a function that returns the text. Default: none.
   */
  readonly instructions?:
    | string
    | { readonly file: string | URL }
    | ((context: InstructionsContext) => string | Promise<string>)
    | undefined;
  /** Tools that the model may call, of any kind: functions, subagents, client tools. Default: none. */
  readonly tools?: readonly AgentTool[] | undefined;
  /** User code that runs at fixed points of a turn, before the hooks of plugins. Default: none. */
  readonly hooks?: Hooks | undefined;
  /** Named bundles of hooks and tools, in the order in which their hooks run. Default: none. */
  readonly plugins?: readonly Plugin[] | undefined;
  /** Limits of each turn. `maxSteps` is 10 if unset. Default: 10 steps, no other limit. */
  readonly budget?: Budget | undefined;
  /**
   * Maximum number of tokens that one model call may generate. Default: 4,096 if a limit on tokens or cost applies, otherwise the
   * model's own limit.
   */
  readonly maxOutputTokens?: number | undefined;
  /** Sampling temperature of the model, 0 or more. Default: the model's own. */
  readonly temperature?: number | undefined;
  /** Texts at which an answer ends; they are not part of it. At most 64. Default: none. */
  readonly stopSequences?: readonly string[] | undefined;
  /**
   * How much the model thinks before it answers. Providers differ in the values that they accept. Thoughts count as output, within
   * `maxOutputTokens`. Default: the provider's.
   */
  readonly reasoningEffort?: ReasoningEffort | undefined;
  /**
   * Whether the model may call tools (`auto`), must not (`none`), or must call one (`required`) or a certain one (`{ tool: name }`). A
   * call is forced in the first step of a turn only, since a turn whose steps all call tools would never end; a `beforeLlm` hook can
   * force one in any step. Default: `auto`.
   */
  readonly toolChoice?: ToolChoice | undefined;
  /**
   * Fields of the provider, by its name: `{ openai: { service_tier: "flex" } }`. They are stored with the definition, so they must hold
   * no secrets. Default: none.
   */
  readonly providerOptions?: ProviderOptions | undefined;
  /** Response format, sent to the model; the answer is not validated. Default: text. See `output`. */
  readonly responseFormat?: ResponseFormat | undefined;
  /** Attempts of one model call, including the first. Default 3. */
  readonly maxModelAttempts?: number | undefined;
  /** The turn fails after this many consecutive rounds in which every call failed. Default 3. */
  readonly maxConsecutiveToolFailures?: number | undefined;
  /** Dollars per million tokens; overrides the runtime's `prices` and the built-in ones. Default: none. */
  readonly price?: Price | undefined;
  /** Chooses the messages that the model sees. Default `fullHistory()`: everything since the last compaction. */
  readonly history?: HistoryCompiler | undefined;
  /**
   * Maximum number of messages in the conversation. Above it the runtime emits a `warning` event or, with `autoCompact`, compacts
   * the conversation. Default: unlimited.
   */
  readonly maxMessages?: number | undefined;
  /** Compacts the conversation when it has too many messages or fills the model's window. Default false. */
  readonly autoCompact?: boolean | AutoCompactOptions | undefined;
  /**
   * Schema of the final answer: of zod 4, arktype, valibot (`toStandardJsonSchema()`) or another library with Standard JSON Schema. It is sent to the model and the answer is validated; an invalid answer is requested once more,
   * then the turn fails. `result.output` is the validated value after transforms. Replaces `responseFormat`. Default: any text is
   * an answer.
   */
  readonly output?: Schema | undefined;
  /** Whether callers may add their own tools for one turn: `executeTurn(input, { clientTools })`. Default false. */
  readonly clientTools?: boolean | undefined;
}

/** The output type of an `output` schema; `Json` without one. */
export type OutputOf<Schema extends ValueSchema> = ValueSchema extends Schema ? Json : ValueOf<Schema>;

/** An agent's definition, without state. Created by `defineAgent`. `Output`: the type of its `output` schema. */
export interface AgentDefinition<Output = unknown> {
  readonly name: string;
  readonly model: LanguageModel;
  readonly instructions: string | ((context: InstructionsContext) => string | Promise<string>);
  readonly tools: ToolRegistry<AgentTool>;
  readonly grantedTools: readonly GrantedTool[];
  readonly hooks: HookRegistry;
  readonly hookCounts: HookCounts;
  readonly guards: readonly RegisteredGuards[];
  /** The plugins that keep data of their own. */
  readonly forgets: readonly RegisteredForget[];
  readonly limits: Limits;
  readonly maxOutputTokens: number | undefined;
  readonly temperature: number | undefined;
  readonly stopSequences: readonly string[] | undefined;
  readonly reasoningEffort: ReasoningEffort | undefined;
  readonly toolChoice: ToolChoice | undefined;
  readonly providerOptions: ProviderOptions | undefined;
  readonly responseFormat: ResponseFormat | undefined;
  readonly maxModelAttempts: number;
  readonly maxConsecutiveToolFailures: number;
  readonly price: Price | null;
  readonly maxMessages: number | undefined;
  readonly history: HistoryCompiler;
  readonly autoCompact: AutoCompact | null;
  readonly output: OutputSchema<Output> | null;
  /** Whether a turn may have tools that its caller executes. */
  readonly clientTools: boolean;
  /** Name, and a hash of the fields that affect behaviour: a turn that continues under another hash emits a warning. */
  readonly ref: DefinitionRef;
  /** The fields that the hash covers, as stored. */
  readonly stored: StoredDefinition;
}

/** Whether `defineAgent` of this or another copy of the package created the value. */
export function isDefinition(value: unknown): value is AgentDefinition {
  if (typeof value !== "object" || value === null) return false;
  const { name, ref, tools, model } = value as Partial<Record<keyof AgentDefinition, unknown>>;
  if (typeof name !== "string" || typeof ref !== "object" || ref === null) return false;
  return hasMethods(tools, ["get", "definitions"]) && hasMethods(model, ["generate"]);
}

export const definitionRule: OptionRule = ruleOf("a definition made by defineAgent()", isDefinition);

/**
 * Checks that the runtime knows a child's definition; without it the child could not run, or not after a restart. Throws
 * `NotFoundError` for an unknown definition, and `InvalidInputError` for any other value or for a different definition under a
 * known name.
 * @param of The called function, for the message: `run.spawn()`.
 */
export function assertGiven(
  definitions: Pick<ReadonlyMap<string, AgentDefinition>, "get">,
  definition: unknown,
  of: string,
): asserts definition is AgentDefinition {
  if (!reading(of, () => isDefinition(definition))) {
    throw new InvalidInputError(`${of} expects a definition made by defineAgent(), not ${describeValue(definition)}`);
  }
  const { name } = definition as AgentDefinition;
  const known = definitions.get(name);
  if (known === definition) return;
  const details = { definition: name };
  if (known) {
    throw new InvalidInputError(
      `${of}: this runtime has a different definition "${name}"; spawn that one, or rename this one`,
      { details },
    );
  }
  throw new NotFoundError(
    `${of}: this runtime does not know the definition "${name}"; add it to { agents: [...] } of createRuntime(), createAgent() or createAgentLoop()`,
    { details },
  );
}

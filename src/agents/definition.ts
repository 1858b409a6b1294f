import { describeValue, hasMethods, type OptionRule, reading, ruleOf } from "../base/index.ts";
import { InvalidInputError, NotFoundError } from "../errors/index.ts";
import type { z } from "zod";
import type { Budget, Limits, Price } from "../budget/index.ts";
import type { CompactionStrategy, HistoryCompiler } from "../context/index.ts";
import type { HookRegistry, Hooks, Plugin } from "../hooks/index.ts";
import type { LanguageModel } from "../model/index.ts";
import type {
  Background,
  DefinitionRef,
  GrantedTool,
  HookCounts,
  Json,
  JsonObject,
  ResponseFormat,
  StoredDefinition,
} from "../state/index.ts";
import type { ClientTool, ControlTool, InternalTool, ParsedArguments, Tool, ToolRegistry } from "../tools/index.ts";
import type { OutputSchema } from "./output-schema.ts";

/** Limits on a subagent and on how many of it there may be. */
export interface SubagentPolicy {
  /** Deepest level of the tree at which agents may be; the root is 0. Default 3. */
  readonly maxDepth?: number | undefined;
  /** Children of one turn that this tool may spawn in all. Default: unlimited. */
  readonly maxChildren?: number | undefined;
  /**
   * Children of one turn that this tool runs at a time, at least 1; the others wait. For children in the background it
   * counts all of the agent, and one too many is refused. Default: unlimited.
   */
  readonly maxConcurrent?: number | undefined;
  /** Names of tools the child may use; never more than its definition has. Default: all of them. */
  readonly allowedTools?: readonly string[] | undefined;
  /** Names of tools the child may not use. Default: none. */
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
  /** Set if its children run in the background; `null` if the call waits for them. */
  readonly background: Background | null;
  readonly parse: (argumentsText: string) => Promise<ParsedArguments>;
  /** The child's prompt. */
  readonly inputOf: (args: Json) => string;
}

/** A tool of any kind, as an agent has it. */
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
  /** How full the model's window may be, in percent, before the next call is preceded by a compaction. Default 80. */
  readonly atPercent?: number | undefined;
  /** Newest messages that stay as they are. Default: the strategy's own number, 20. */
  readonly keep?: number | undefined;
}

export interface AutoCompact {
  readonly strategy: CompactionStrategy;
  readonly atPercent: number;
  /** How many of the newest messages to leave as they are. Default: the strategy's own number. */
  readonly keep?: number;
}

/** What `defineAgent()` takes. */
export interface AgentOptions<Schema extends z.core.$ZodType = z.core.$ZodType> {
  /** Letters, digits, `_`, `-` and `.`; 1 to 64 characters. */
  readonly name: string;
  /** A model, or the name of one: `offline`, or any other of the OpenAI-compatible server of the environment. */
  readonly model: LanguageModel | string;
  /**
   * The system prompt: a text, a UTF-8 file of up to 1,000,000 bytes (checked when the agent is defined, read once per
   * turn), or a function that gives the text. Default: none.
   */
  readonly instructions?:
    | string
    | { readonly file: string | URL }
    | ((context: InstructionsContext) => string | Promise<string>)
    | undefined;
  /** Tools that the model may call, of any kind: functions, subagents, client tools. Default: none. */
  readonly tools?: readonly AgentTool[] | undefined;
  /** The agent's own code at fixed points of a turn; it runs before the hooks of plugins. Default: none. */
  readonly hooks?: Hooks | undefined;
  /** Named bundles of hooks and tools, in the order in which their hooks run. Default: none. */
  readonly plugins?: readonly Plugin[] | undefined;
  /** Limits of each turn. `maxSteps` is 10 if none is given. Default: 10 steps, nothing else. */
  readonly budget?: Budget | undefined;
  /**
   * The most tokens that one model call may generate. Default: 4,096 if a limit on tokens or cost binds, else the
   * model's own limit.
   */
  readonly maxOutputTokens?: number | undefined;
  /** Sampling temperature of the model, 0 or more. Default: the model's own. */
  readonly temperature?: number | undefined;
  /** The form of every answer, as it is sent to the model; the answer is not checked. Default: text. See `output`. */
  readonly responseFormat?: ResponseFormat | undefined;
  /** Attempts of one model call, the first included. Default 3. */
  readonly maxModelAttempts?: number | undefined;
  /** After this many rounds in a row in which every call failed, the turn fails. Default 3. */
  readonly maxConsecutiveToolFailures?: number | undefined;
  /** Dollars per million tokens; takes precedence over the runtime's `prices` and the built-in ones. Default: none. */
  readonly price?: Price | undefined;
  /** Chooses the messages that the model sees. Default `fullHistory()`: everything since the last compaction. */
  readonly history?: HistoryCompiler | undefined;
  /**
   * Largest number of messages in the conversation: above it a `warning` event is emitted or, with `autoCompact`, the
   * conversation is compacted. Default: unlimited.
   */
  readonly maxMessages?: number | undefined;
  /** Compacts the conversation when it has too many messages or fills the model's window. Default false. */
  readonly autoCompact?: boolean | AutoCompactOptions | undefined;
  /**
   * Schema of the final answer. The model is asked for it and the answer is checked; one that does not fit is asked for
   * once more, then the turn fails. The checked value, transforms applied, is `result.output`. Replaces
   * `responseFormat`. Default: any text is an answer.
   */
  readonly output?: Schema | undefined;
  /** Whether callers may bring tools of their own for one turn: `executeTurn(input, { clientTools })`. Default false. */
  readonly clientTools?: boolean | undefined;
}

/** What an `output` schema gives; `Json` where there is none. */
export type OutputOf<Schema extends z.core.$ZodType> = z.core.$ZodType extends Schema ? Json : z.output<Schema>;

/** An agent as code defines it, without state. Made by `defineAgent`. `Output`: what its `output` schema gives. */
export interface AgentDefinition<Output = unknown> {
  readonly name: string;
  readonly model: LanguageModel;
  readonly instructions: string | ((context: InstructionsContext) => string | Promise<string>);
  readonly tools: ToolRegistry<AgentTool>;
  readonly grantedTools: readonly GrantedTool[];
  readonly hooks: HookRegistry;
  readonly hookCounts: HookCounts;
  readonly limits: Limits;
  readonly maxOutputTokens: number | undefined;
  readonly temperature: number | undefined;
  readonly responseFormat: ResponseFormat | undefined;
  readonly maxModelAttempts: number;
  readonly maxConsecutiveToolFailures: number;
  readonly price: Price | null;
  readonly maxMessages: number | undefined;
  readonly history: HistoryCompiler;
  readonly autoCompact: AutoCompact | null;
  readonly output: OutputSchema<Output> | null;
  /** Whether a turn may have tools that its caller runs. */
  readonly clientTools: boolean;
  /** Name, and a hash of the parts that shape its behaviour: a turn that goes on under another hash emits a warning. */
  readonly ref: DefinitionRef;
  /** The parts that the hash covers, as the stores keep them. */
  readonly stored: StoredDefinition;
}

/** Whether `defineAgent` made it, in this copy of the package or another one. */
export function isDefinition(value: unknown): value is AgentDefinition {
  if (typeof value !== "object" || value === null) return false;
  const { name, ref, tools, model } = value as Partial<Record<keyof AgentDefinition, unknown>>;
  if (typeof name !== "string" || typeof ref !== "object" || ref === null) return false;
  return hasMethods(tools, ["get", "definitions"]) && hasMethods(model, ["generate"]);
}

export const definitionRule: OptionRule = ruleOf("a definition, as defineAgent() makes it", isDefinition);

/**
 * Checks that the runtime knows a child's definition: only then can the child run, also after a restart. Throws
 * `NotFoundError` for an unknown one, `InvalidInputError` for a value that is not a definition, or for a different
 * definition under a known name.
 * @param of The function that got it, for the message: `run.spawn()`.
 */
export function assertGiven(
  definitions: Pick<ReadonlyMap<string, AgentDefinition>, "get">,
  definition: unknown,
  of: string,
): asserts definition is AgentDefinition {
  if (!reading(of, () => isDefinition(definition))) {
    throw new InvalidInputError(
      `${of} takes a definition, as defineAgent() makes it, not ${describeValue(definition)}`,
    );
  }
  const { name } = definition as AgentDefinition;
  const known = definitions.get(name);
  if (known === definition) return;
  const details = { definition: name };
  if (known) {
    throw new InvalidInputError(
      `${of} was given another definition "${name}" than this runtime has; spawn the one that it was given, or give this one its own name`,
      { details },
    );
  }
  throw new NotFoundError(
    `${of}: the definition "${name}" was not given to this runtime; name it in { agents: [...] } of createRuntime(), createAgent() or createAgentLoop()`,
    { details },
  );
}

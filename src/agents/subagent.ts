import { z } from "zod";
import {
  anyRule,
  deepFreeze,
  flagRule,
  type OptionsSchema,
  functionRule,
  listRule,
  oneOfRule,
  optionsOf,
  optionsRule,
  reading,
  textRule,
  wholeNumberRule,
} from "../base/index.ts";
import { type Budget, budgetRule, limitsOf } from "../budget/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { Background, Json, SpawnLimit } from "../state/index.ts";
import { defineTool, type ValueOf, type ValueSchema } from "../tools/index.ts";
import {
  type AgentDefinition,
  type AgentTool,
  type SubagentPolicy,
  type SubagentTool,
  definitionRule,
} from "./definition.ts";

/** Options of `subagent()` besides the definition. */
export interface SubagentOptions<Schema extends ValueSchema = ValueSchema<unknown, { readonly input: string }>> {
  /** The tool's name for the model. Default: the definition's name. */
  readonly name?: string | undefined;
  /** Description for the model of what the subagent can do. Default: that it performs tasks and returns its final answer. */
  readonly description?: string | undefined;
  /** Schema of the arguments that the model generates. Default: `{ input: string }`. */
  readonly parameters?: Schema | undefined;
  /** Builds the child's prompt from the arguments. Default: `input`, or the arguments as JSON. */
  readonly input?: ((args: ValueOf<Schema>) => string) | undefined;
  /**
   * Limits of the child's whole life, in addition to those of its turns and of all its ancestors. Default: none of its
   * own.
   */
  readonly budget?: Budget | undefined;
  /** Limits on the depth, the number of children and their tools. Default: depth 3, no other limit. */
  readonly policy?: SubagentPolicy | undefined;
  /**
   * `await`: the call waits for the child and returns its answer. `background`: the call returns the child's id immediately; the
   * child continues, even after the turn, and its end is reported to the agent. Default `await`.
   */
  readonly mode?: "await" | "background" | undefined;
  /**
   * What happens when a background child ends while no turn is open, or the open turn makes no further model call. `keep`: the
   * next turn includes the report. `wake`: the agent starts a turn. Default `keep`.
   */
  readonly onEnd?: "keep" | "wake" | undefined;
  /**
   * A child that completes ends the turn: its answer is the turn's answer, and the model is not called again. See `endsTurn` of
   * `defineTool()`. Not with `mode: "background"`. Default false.
   */
  readonly endsTurn?: boolean | undefined;
  /**
   * What the child sees of its parent. `none`: only its input. `conversation`: before its input, the texts and files of the user and the
   * assistant since the parent's last compaction; no tool calls, results and thoughts. The child pays for them. Default `none`.
   */
  readonly history?: "none" | "conversation" | undefined;
}

export const DEFAULT_MAX_DEPTH = 3;

/** Makes a definition callable by another agent's model. Throws `InvalidInputError` for a wrong name or budget. */
export function subagent<Schema extends ValueSchema = ValueSchema<unknown, { readonly input: string }>>(
  definition: AgentDefinition,
  given?: SubagentOptions<Schema>,
): SubagentTool {
  const known = reading("subagent(): its definition", () => {
    definitionRule(definition, "subagent(): its definition");
    return definition.name;
  });
  const of = `subagent "${known}"`;
  const options = optionsOf<SubagentOptions<Schema>>(given, of, subagentOptionsSchema);
  return reading(of, () => made(definition, options));
}

const atLeastNone = wholeNumberRule(0);
const toolNames = listRule("a list of names of tools", textRule);

const policyRule = optionsRule<SubagentPolicy>({
  rules: {
    maxDepth: atLeastNone,
    maxChildren: atLeastNone,
    maxConcurrent: wholeNumberRule(1),
    allowedTools: toolNames,
    deniedTools: toolNames,
  },
  instead: { depth: "maxDepth", concurrency: "maxConcurrent", tools: "allowedTools" },
});

const subagentOptionsSchema: OptionsSchema<SubagentOptions> = {
  rules: {
    name: textRule,
    description: textRule,
    parameters: anyRule,
    input: functionRule,
    budget: budgetRule,
    policy: policyRule,
    mode: oneOfRule("await", "background"),
    onEnd: oneOfRule("keep", "wake"),
    endsTurn: flagRule,
    history: oneOfRule("none", "conversation"),
  },
  instead: {
    schema: "parameters",
    inputSchema: "parameters",
    prompt: "input",
    limits: "budget",
    maxDepth: "policy: { maxDepth }",
    maxChildren: "policy: { maxChildren }",
    maxConcurrent: "policy: { maxConcurrent }",
    allowedTools: "policy: { allowedTools }",
    deniedTools: "policy: { deniedTools }",
    background: 'mode: "background"',
    returnDirect: "endsTurn",
  },
};

function made<Schema extends ValueSchema>(definition: AgentDefinition, options: SubagentOptions<Schema>): SubagentTool {
  const name = options.name ?? definition.name;
  const parameters =
    options.parameters ?? z.object({ input: z.string().describe("What the subagent is asked to do.") });
  const background = backgroundOf(name, options);
  const description = options.description ?? describe(definition.name, background);
  const shape = defineTool({ name, description, parameters, execute: () => undefined });
  if (options.endsTurn && background) {
    throw new InvalidInputError(
      `subagent "${name}": endsTurn applies only to calls that wait for the child; remove endsTurn or mode: "background"`,
    );
  }
  const policy = options.policy ?? {};
  for (const tool of [...(policy.allowedTools ?? []), ...(policy.deniedTools ?? [])]) {
    if (definition.tools.get(tool)) continue;
    throw new InvalidInputError(
      `subagent "${name}": its policy names the tool "${tool}", which "${definition.name}" does not have`,
    );
  }
  const render = options.input as ((args: Json) => string) | undefined;
  return Object.freeze({
    kind: "subagent",
    name,
    description,
    effect: "once",
    jsonSchema: shape.jsonSchema,
    definition,
    limits: deepFreeze(limitsOf(options.budget)),
    policy: deepFreeze(structuredClone(policy)),
    ...(options.history === "conversation" ? { history: "conversation" } : {}),
    ...(options.endsTurn ? { endsTurn: true } : {}),
    background,
    parse: (text: string) => shape.parse(text),
    inputOf: render ?? defaultInput,
  });
}

function backgroundOf(
  name: string,
  { mode = "await", onEnd }: Pick<SubagentOptions, "mode" | "onEnd">,
): Background | null {
  if (mode === "background") return { onEnd: onEnd ?? "keep" };
  if (onEnd === undefined) return null;
  throw new InvalidInputError(
    `subagent "${name}": onEnd applies only to background children; add mode: "background", or remove onEnd`,
  );
}

function describe(name: string, background: Background | null): string {
  if (!background) return `Delegates a task to the subagent "${name}" and returns its final answer.`;
  return `Starts the subagent "${name}" on a task in the background and returns its id at once. Its final answer reaches you later by itself; go on with other work meanwhile.`;
}

function defaultInput(args: Json): string {
  if (args !== null && typeof args === "object" && "input" in args && typeof args.input === "string") return args.input;
  return JSON.stringify(args);
}

/**
 * How many children of a tool run at a time; further ones wait. `undefined` without a limit, or for background children, where a
 * child above the limit is refused.
 */
export function spawnLimitOf(tool: SubagentTool): SpawnLimit | undefined {
  if (tool.background || tool.policy.maxConcurrent === undefined) return undefined;
  return { childName: tool.definition.name, maxConcurrent: tool.policy.maxConcurrent };
}

/** The tools that a child may use. */
export interface Grant {
  /** Names of the tools that the child may use; `null` for all tools of its definition. */
  readonly grantedTools: string[] | null;
  /** Names of the tools that the child and all its descendants may not use. */
  readonly deniedTools?: string[];
}

/**
 * The tools that a child may use under this policy. Tools denied to its parent stay denied: grants only get narrower with depth.
 */
export function grantOf(tool: Pick<SubagentTool, "definition" | "policy">, deniedAbove: readonly string[] = []): Grant {
  const { allowedTools, deniedTools = [] } = tool.policy;
  const { tools } = tool.definition.tools;
  const names = tools.map(({ name }) => name);
  // Tools that affect only the agent's own context or subagents are denied only by name.
  const withheld = tools.flatMap(({ name, kind }) =>
    !allowedTools || isOwnTool(kind) || allowedTools.includes(name) ? [] : [name],
  );
  const denied = new Set([...deniedAbove, ...deniedTools, ...withheld]);
  if (denied.size === 0) return { grantedTools: null };
  return { grantedTools: names.filter((name) => !denied.has(name)), deniedTools: [...denied] };
}

function isOwnTool(kind: AgentTool["kind"]): boolean {
  return kind === "internal" || kind === "control";
}

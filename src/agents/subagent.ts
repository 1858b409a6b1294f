import { z } from "zod";
import {
  anyRule,
  deepFreeze,
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
import { defineTool } from "../tools/index.ts";
import {
  type AgentDefinition,
  type AgentTool,
  type SubagentPolicy,
  type SubagentTool,
  definitionRule,
} from "./definition.ts";

/** What `subagent()` takes beside the definition. */
export interface SubagentOptions<Schema extends z.core.$ZodObject = z.core.$ZodObject> {
  /** The tool's name for the model. Default: the definition's name. */
  readonly name?: string | undefined;
  /** What the subagent is good for, for the model. Default: that it takes tasks and returns its final answer. */
  readonly description?: string | undefined;
  /** The arguments that the model gives. Default: `{ input: string }`. */
  readonly parameters?: Schema | undefined;
  /** The child's prompt from those arguments. Default: `input`, or the arguments as JSON. */
  readonly input?: ((args: z.output<Schema>) => string) | undefined;
  /**
   * Limits of the child's whole life, in addition to those of its turns and of all its ancestors. Default: none of its
   * own.
   */
  readonly budget?: Budget | undefined;
  /** Limits on how many children there are, how deep, and with which tools. Default: depth 3, nothing else. */
  readonly policy?: SubagentPolicy | undefined;
  /**
   * `await`: the call waits for the child, whose answer is its result. `background`: the call returns the child's id at
   * once; the child goes on, also after the turn, and its end is reported to the agent. Default `await`.
   */
  readonly mode?: "await" | "background" | undefined;
  /**
   * What happens when a child in the background ends while no turn is open, or the open one makes no further model
   * call. `keep`: the next turn sees the report. `wake`: the agent starts a turn. Default `keep`.
   */
  readonly onEnd?: "keep" | "wake" | undefined;
}

export const DEFAULT_MAX_DEPTH = 3;

/** Makes a definition callable by another agent's model. Throws `InvalidInputError` for a wrong name or budget. */
export function subagent<Schema extends z.core.$ZodObject = z.core.$ZodObject>(
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
  },
};

function made<Schema extends z.core.$ZodObject>(
  definition: AgentDefinition,
  options: SubagentOptions<Schema>,
): SubagentTool {
  const name = options.name ?? definition.name;
  const parameters =
    options.parameters ?? z.object({ input: z.string().describe("What the subagent is asked to do.") });
  const background = backgroundOf(name, options);
  const description = options.description ?? describe(definition.name, background);
  const shape = defineTool({ name, description, parameters, execute: () => undefined });
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
    background,
    parse: (text: string) => shape.parse(text),
    inputOf: render ?? defaultInput,
  });
}

function backgroundOf(name: string, { mode = "await", onEnd }: SubagentOptions): Background | null {
  if (mode === "background") return { onEnd: onEnd ?? "keep" };
  if (onEnd === undefined) return null;
  throw new InvalidInputError(
    `subagent "${name}": onEnd is for children in the background; add mode: "background", or leave it out`,
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
 * How many children of a tool run at a time. `undefined` if there is no limit, or if they run in the background, where one
 * too many is refused.
 */
export function spawnLimitOf(tool: SubagentTool): SpawnLimit | undefined {
  if (tool.background || tool.policy.maxConcurrent === undefined) return undefined;
  return { childName: tool.definition.name, maxConcurrent: tool.policy.maxConcurrent };
}

/** The tools that a child may use. */
export interface Grant {
  /** Names of the tools it may use; `null` for all that its definition has. */
  readonly grantedTools: string[] | null;
  /** Names of tools that it and all its descendants may not use. */
  readonly deniedTools?: string[];
}

/**
 * The tools a child may use under this policy. Tools that its parent was denied stay denied: grants only get narrower
 * downwards.
 */
export function grantOf(tool: Pick<SubagentTool, "definition" | "policy">, deniedAbove: readonly string[] = []): Grant {
  const { allowedTools, deniedTools = [] } = tool.policy;
  const { tools } = tool.definition.tools;
  const names = tools.map(({ name }) => name);
  // Tools that reach only the agent's own context and subagents are withheld only by name.
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

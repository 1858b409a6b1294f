import { z } from "zod";
import { type Budget, limitsOf } from "../budget/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { Json } from "../state/index.ts";
import { defineTool } from "../tools/index.ts";
import type { AgentDefinition, SubagentPolicy, SubagentTool } from "./definition.ts";

export interface SubagentOptions<Schema extends z.ZodObject = z.ZodObject> {
  /** The tool's name for the model. Default: the definition's name. */
  readonly name?: string | undefined;
  readonly description?: string | undefined;
  /** What the model hands over. Default: `{ input: string }`. */
  readonly parameters?: Schema | undefined;
  /** The child's prompt from those arguments. Default: `input`, or the arguments as JSON. */
  readonly input?: ((args: z.output<Schema>) => string) | undefined;
  /** Limits of the child's whole life, in addition to those of its definition's turns and of all its ancestors. */
  readonly budget?: Budget | undefined;
  readonly policy?: SubagentPolicy | undefined;
}

export const DEFAULT_MAX_DEPTH = 3;

/** Makes a definition callable by another agent's model. Throws `InvalidInputError` for names and budgets that are wrong. */
export function subagent<Schema extends z.ZodObject = z.ZodObject>(
  definition: AgentDefinition,
  options: SubagentOptions<Schema> = {},
): SubagentTool {
  const name = options.name ?? definition.name;
  const parameters =
    options.parameters ?? z.object({ input: z.string().describe("What the subagent is asked to do.") });
  const description =
    options.description ?? `Delegates a task to the subagent "${definition.name}" and returns its final answer.`;
  const shape = defineTool({ name, description, parameters, execute: () => undefined });
  const policy = options.policy ?? {};
  if (policy.maxConcurrent === 0) {
    throw new InvalidInputError(
      `subagent "${name}": policy.maxConcurrent is 0, so no child could ever run; use at least 1`,
    );
  }
  const { maxDepth, maxChildren, maxConcurrent } = policy;
  for (const [field, value] of Object.entries({ maxDepth, maxChildren, maxConcurrent })) {
    if (value === undefined || (Number.isSafeInteger(value) && value >= 0)) continue;
    throw new InvalidInputError(
      `subagent "${name}": policy.${field} is ${String(value)}; use a whole number of at least 0`,
    );
  }
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
    limits: limitsOf(options.budget),
    policy,
    parse: (text: string) => shape.parse(text),
    inputOf: render ?? defaultInput,
  });
}

function defaultInput(args: Json): string {
  if (args !== null && typeof args === "object" && "input" in args && typeof args.input === "string") return args.input;
  return JSON.stringify(args);
}

/** What a child may use. */
export interface Grant {
  /** Names of its tools; null: all that its definition has. */
  readonly grantedTools: string[] | null;
  /** Names that are withheld from it and from everything below it. */
  readonly deniedTools?: string[];
}

/**
 * The tools a child may use under this policy. What its parent was denied stays denied: grants only get narrower on the
 * way down (row S8).
 */
export function grantOf(tool: Pick<SubagentTool, "definition" | "policy">, deniedAbove: readonly string[] = []): Grant {
  const { allowedTools, deniedTools = [] } = tool.policy;
  const { tools } = tool.definition.tools;
  const names = tools.map(({ name }) => name);
  // Tools on the agent's own context reach nothing outside it: they are withheld only where they are named.
  const withheld = tools.flatMap(({ name, kind }) =>
    !allowedTools || kind === "internal" || allowedTools.includes(name) ? [] : [name],
  );
  const denied = new Set([...deniedAbove, ...deniedTools, ...withheld]);
  if (denied.size === 0) return { grantedTools: null };
  return { grantedTools: names.filter((name) => !denied.has(name)), deniedTools: [...denied] };
}

import { copyOfJson, functionRule, reading, recordRule } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { createToolRegistry, nothingToRedact, type RunContext, type Tool } from "../tools/index.ts";
import { collectDefinitions, describeTool, grantedToolOf, storedFrom } from "./define-agent.ts";
import { type AgentDefinition, type AgentTool, definitionRule } from "./definition.ts";

/** Runs in the place of a tool: with the arguments that the tool's schema has checked. Its result is rendered like that of a tool. */
export type ToolStub = (args: never, run: RunContext) => unknown;

/**
 * Copies a definition with functions in the place of tools, at any depth: names, schemas, effect classes, limits and approvals stay those of the
 * tools, and their own code does not run. A stub runs in the process of its agent, without queue, secrets and credentials. A client tool, a
 * question and a subagent can be replaced too.
 *
 * @param stubs By the name of the tool.
 * @throws InvalidInputError for a value that is not a definition, for a stub that is not a function, and for tools that no agent of the tree has.
 */
export function withTools<Definition extends AgentDefinition>(
  definition: Definition,
  stubs: Readonly<Record<string, ToolStub>>,
): Definition {
  reading("withTools(): its definition", () => definitionRule(definition, "withTools(): its definition"));
  const given = reading("withTools(): its tools", () => {
    recordRule("an object that maps names of tools to functions", functionRule)(stubs, "withTools(): its tools");
    return new Map(Object.entries(stubs));
  });
  const all = [...collectDefinitions([definition]).values()].flatMap(({ tools }) => tools.tools);
  for (const name of given.keys()) {
    if (all.some((tool) => tool.name === name && isReplaceable(tool))) continue;
    const known = [...new Set(all.filter(isReplaceable).map((tool) => tool.name))].join(", ");
    throw new InvalidInputError(
      `withTools(): no agent of "${definition.name}" has a tool "${name}" that can be replaced; ${known === "" ? "there are none" : `there are ${known}`}`,
    );
  }
  // One copy per definition, so that a subagent shared by two others stays shared.
  const copies = new Map<AgentDefinition, AgentDefinition>();
  const copyOf = <Any extends AgentDefinition>(original: Any): Any => {
    const copy = copies.get(original) ?? copied(original, given, copyOf);
    copies.set(original, copy);
    return copy as Any;
  };
  return copyOf(definition);
}

function isReplaceable({ kind }: AgentTool): boolean {
  return kind === "function" || kind === "client" || kind === "subagent";
}

function copied(
  original: AgentDefinition,
  stubs: ReadonlyMap<string, ToolStub>,
  copyOf: (child: AgentDefinition) => AgentDefinition,
): AgentDefinition {
  const { name, tools, stored } = original;
  const members = tools.tools.map((tool): AgentTool => {
    const stub = isReplaceable(tool) ? stubs.get(tool.name) : undefined;
    if (stub) return replaced(tool, stub);
    if (tool.kind !== "subagent") return tool;
    const child = copyOf(tool.definition);
    return child === tool.definition ? tool : Object.freeze({ ...tool, definition: child });
  });
  if (members.every((tool, index) => tool === tools.tools[index])) return original;
  const registry = createToolRegistry<AgentTool>(members, tools.onDemand);
  const { hash: _hash, ...content } = stored;
  const changed = storedFrom({ ...content, tools: registry.tools.map(describeTool) });
  return Object.freeze({
    ...original,
    tools: registry,
    grantedTools: Object.freeze(registry.tools.map((tool) => Object.freeze(grantedToolOf(tool)))),
    ref: Object.freeze({ name, hash: changed.hash }),
    stored: changed,
  });
}

const DEFAULT_TIMEOUT_MS = 60_000;
const DEFAULT_CHARACTERS = 32_000;

/** A function tool with the identity, schema, effect and approval of the tool that it replaces, and none of its code. */
function replaced(tool: AgentTool, stub: ToolStub): Tool {
  const own = tool.kind === "function" ? tool : undefined;
  const { name, description, effect, jsonSchema } = tool;
  return Object.freeze({
    kind: "function",
    name,
    description,
    effect,
    jsonSchema,
    timeoutMs: own?.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    ...(own?.concurrency === undefined ? {} : { concurrency: own.concurrency }),
    maxAttempts: own?.maxAttempts ?? 1,
    maxOutputCharacters: own?.maxOutputCharacters ?? DEFAULT_CHARACTERS,
    needsApproval: own?.needsApproval ?? false,
    ...(own?.approvalExpiresAfterMs === undefined ? {} : { approvalExpiresAfterMs: own.approvalExpiresAfterMs }),
    ...(own?.deferred === undefined ? {} : { deferred: own.deferred }),
    ...(own?.forwards === undefined ? {} : { forwards: own.forwards }),
    ...(own?.unchecked === undefined ? {} : { unchecked: own.unchecked }),
    ...((tool.kind === "function" || tool.kind === "subagent") && tool.endsTurn ? { endsTurn: true } : {}),
    parse: (text: string) => tool.parse(text),
    describeCall: (args) => (tool.kind === "function" || tool.kind === "client" ? tool.describeCall(args) : name),
    resolveArguments: (json) => ({ args: copyOfJson(json), redact: nothingToRedact }),
    execute: (args, run) => stub(args as never, run),
  } satisfies Tool);
}

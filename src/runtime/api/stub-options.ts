import { z } from "zod";
import { hostedInStubbed } from "../../actors/index.ts";
import { type AgentDefinition, type AgentTool, collectDefinitions } from "../../agents/index.ts";
import { type OptionRule, stableStringify } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { compositionOf, type LanguageModel } from "../../model/index.ts";
import { type AgentRecord, type SessionStub, sessionStubSchema, take } from "../../state/index.ts";

/** Maximum number of stubs of a session. */
const MOST_STUBS = 200;
/** Maximum size of the stubs of a session as JSON, in characters. Each record of the session's agents contains them. */
const STUBS_CHARACTERS = 200_000;

/** Stubs of a new session. */
export const newSessionStubsSchema = z
  .array(
    z
      .strictObject(sessionStubSchema.shape)
      .refine(({ output, error }) => (output === undefined) !== (error === undefined), {
        message: "a stub has either an output or an error",
      })
      .refine(({ match, arguments: args }) => match === undefined || args !== undefined, {
        message: "match compares arguments, and the stub has none",
      })
      .meta({ id: "SessionStub", description: "A result that takes the place of a tool." }),
  )
  .min(1)
  .max(MOST_STUBS);

/** The stubs of a session, as a frozen copy. */
export const stubsRule: OptionRule = (value, where) =>
  take(newSessionStubsSchema, value, where, { maxSize: STUBS_CHARACTERS });

/**
 * Throws `InvalidInputError` for stubs of unknown tools and agents, and for agents whose models have tools that their providers execute:
 * nothing can take the place of those.
 *
 * @param all The definitions of the runtime, by name.
 */
export function assertStubbable(
  definition: AgentDefinition,
  all: ReadonlyMap<string, AgentDefinition>,
  stubs: readonly SessionStub[],
): void {
  const ofTree = [...collectDefinitions([definition]).values()];
  for (const { model } of ofTree) assertNotHosted(model);
  for (const [index, stub] of stubs.entries()) assertStub(stub, `stub ${index + 1}`, { ofTree, all });
}

function assertNotHosted(model: LanguageModel): void {
  const { name, hostedTools = [] } = model;
  if (hostedTools.length > 0) throw hostedInStubbed(name, hostedTools);
  for (const one of compositionOf(model)?.models ?? []) assertNotHosted(one);
}

interface Known {
  readonly ofTree: readonly AgentDefinition[];
  readonly all: ReadonlyMap<string, AgentDefinition>;
}

function assertStub({ tool: name, agent }: SessionStub, where: string, { ofTree, all }: Known): void {
  const named = agent === undefined ? undefined : all.get(agent);
  if (agent !== undefined && !named) {
    throw new InvalidInputError(
      `${where} is for the unknown agent "${agent}"; there are ${[...all.keys()].join(", ")}`,
    );
  }
  const tools = (named ? [named] : ofTree).flatMap((one) => one.tools.tools);
  if (tools.some((tool) => tool.name === name && isStubbable(tool))) return;
  if (tools.some((tool) => tool.name === name)) {
    throw new InvalidInputError(
      `${where} names "${name}", a tool of the runtime that runs in stubbed sessions too; leave the stub out`,
    );
  }
  const known = [...new Set(tools.filter(isStubbable).map((tool) => tool.name))].join(", ");
  const owner = named ? `agent "${named.name}"` : "no agent of the session";
  const has = named ? "has no tool" : "has a tool";
  throw new InvalidInputError(`${where}: ${owner} ${has} "${name}"; there are ${known === "" ? "none" : known}`);
}

function isStubbable({ kind }: AgentTool): boolean {
  return kind === "function" || kind === "client" || kind === "subagent";
}

/** Throws `InvalidInputError` unless an existing agent has these stubs: they are chosen when an agent is created. */
export function assertSameStubs(
  { agentId, stubs }: Pick<AgentRecord, "agentId" | "stubs">,
  given: readonly SessionStub[] | undefined,
): void {
  if (stableStringify(stubs ?? null) === stableStringify(given ?? null)) return;
  const has = stubs ? (given ? "other stubs" : "stubs") : "no stubs";
  throw new InvalidInputError(
    `agent "${agentId}" exists, and has ${has}; stubs are chosen when an agent is created, so use a new id or key`,
  );
}

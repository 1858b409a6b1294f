import { type AgentDefinition, type AgentTool, withModel } from "../agents/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { LanguageModel } from "../model/index.ts";
import type { AgentIdentity, CallOutcome, CallState, Content, Json, StoredError } from "../state/index.ts";
import type { NewArtifact } from "../stores/index.ts";
import { hostedInStubbed, isStubbed } from "./stub-rule.ts";

/*
 * Tool calls of forks. A fork continues from the past of another tree, whose effects have happened. So its tools with an effect outside
 * are not run: such a call gets a simulated result, or the recorded result of an equal call, or an error for the model.
 *
 * 1. The rule depends only on the stored record of the agent (`forkedFrom`), which each subagent inherits: another process, a restart
 *    or a worker of a queue decides in the same way.
 * 2. A call that is not run opens no request, runs no `needsApproval`, `reconcile` or `cancel` of its tool, and reaches no queue.
 */

/** A tool as the rule sees it. */
type RuledTool = Pick<AgentTool, "kind" | "name"> & { readonly effect?: AgentTool["effect"] };

/** Whether the call's tool is run: always, except in a fork. A call gated with an effect keeps it under a newer definition. */
export function isRunHere(
  { forkedFrom }: Pick<AgentIdentity, "forkedFrom">,
  { kind, name, effect }: RuledTool,
  gate: CallState["gate"] = null,
): boolean {
  if (!forkedFrom || (kind !== "function" && kind !== "client")) return true;
  if (forkedFrom.allowed?.includes(name)) return true;
  return kind === "function" && effect === "none" && (gate === null || gate.effect === "none");
}

/** A recorded call of the origin, with all that its result consists of. */
export interface RecordedCall {
  /** `recordedCallId` of the call. */
  readonly id: string;
  readonly name: string;
  /** `hashOfArguments` of its validated arguments. */
  readonly argumentsHash: string;
  readonly outcome: CallOutcome;
  readonly content: Content;
  readonly structured?: Json | undefined;
  readonly error: StoredError | null;
  /** The artifact with the complete text, if `content` is an excerpt. */
  readonly artifactId: string | null;
  /** The artifacts that the call saved. */
  readonly artifacts: readonly NewArtifact[];
}

/** The call of a fork for which a simulated tool returns the result. */
export interface SimulatedCall {
  /** Id of the agent. */
  readonly agentId: string;
  /** Name of the agent's definition. */
  readonly agentName: string;
  /** Id of the call, within the fork. */
  readonly callId: string;
  /** Aborted when the call is no longer needed. */
  readonly signal: AbortSignal;
}

/** Takes the place of a tool in a fork. Its result is rendered like that of a tool; if it throws, the call gets an error. */
export type SimulatedTool = (args: never, call: SimulatedCall) => unknown;

/** By root agent. They are code, so only the process that forked the tree has them. */
const simulations = new Map<string, ReadonlyMap<string, SimulatedTool>>();

/** Uses these functions in the place of tools, in every agent of the tree, until the returned function is called. */
export function simulateTools(rootAgentId: string, tools: ReadonlyMap<string, SimulatedTool>): () => void {
  if (tools.size > 0) simulations.set(rootAgentId, tools);
  return () => void simulations.delete(rootAgentId);
}

export function simulationOf({ rootAgentId, forkedFrom }: AgentIdentity, name: string): SimulatedTool | undefined {
  return forkedFrom ? simulations.get(rootAgentId)?.get(name) : undefined;
}

/** By root agent. They are code, too. */
const models = new Map<string, LanguageModel>();

/** Uses this model for the root agent of a fork, in the place of its definition's, until the returned function is called. */
export function useModelInFork(rootAgentId: string, model: LanguageModel): () => void {
  models.set(rootAgentId, model);
  return () => void models.delete(rootAgentId);
}

/** The definition with the model that was chosen for the fork. */
export function definitionInFork(
  { agentId, forkedFrom }: Pick<AgentIdentity, "agentId" | "forkedFrom">,
  definition: AgentDefinition,
): AgentDefinition {
  const model = forkedFrom && models.get(agentId);
  return model ? withModel(definition, model) : definition;
}

/** Whether the rule for forks gives the call its result. Stubs come first: a fork of a stubbed session has them, too. */
export function isHeldBack(
  host: { readonly identity: AgentIdentity },
  tool: AgentTool,
  gate: CallState["gate"] = null,
): boolean {
  if (isStubbed(host.identity, tool)) return false;
  return !isRunHere(host.identity, tool, gate) || simulationOf(host.identity, tool.name) !== undefined;
}

/**
 * Tools that the provider executes during an answer have effects outside, too. Throws `InvalidInputError` for a model with such tools
 * in a fork that does not allow them, and in a stubbed session.
 */
export function assertHostedAllowed(
  { forkedFrom, stubs }: Pick<AgentIdentity, "forkedFrom" | "stubs">,
  { name, hostedTools = [] }: Pick<LanguageModel, "name" | "hostedTools">,
): void {
  if (stubs && hostedTools.length > 0) throw hostedInStubbed(name, hostedTools);
  if (!forkedFrom) return;
  const refused = hostedTools.filter((tool) => !forkedFrom.allowed?.includes(tool));
  if (refused.length === 0) return;
  throw new InvalidInputError(
    `the provider of model "${name}" executes ${refused.join(", ")} during an answer, which a fork does not do by itself: ` +
      `fork with allow: ${JSON.stringify(refused)}, or with a model without these tools`,
  );
}

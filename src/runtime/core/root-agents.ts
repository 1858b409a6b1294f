import { type AgentDefinition, assertGiven, isDefinition } from "../../agents/index.ts";
import { NotFoundError } from "../../errors/index.ts";
import type { AgentIdentity } from "../../state/index.ts";
import { textOfCaller } from "../api/agent-options.ts";

/** Maximum depth of a tree below a root agent, even if its subagents' own policies allow more. */
const DEEPEST_TREE = 64;

interface RootAgentDependencies {
  readonly tenant: string;
  readonly clock: { now(): number };
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
}

/** A definition of the runtime, given as such or by its name. Throws `NotFoundError` for an unknown one. */
export function knownDefinition(
  { definitions }: Pick<RootAgentDependencies, "definitions">,
  asked: AgentDefinition | string,
  of: string,
): AgentDefinition {
  const name = isDefinition(asked) ? asked.name : textOfCaller(asked, `${of}: the definition's name`);
  const definition = definitions.get(name);
  if (isDefinition(asked)) assertGiven(definitions, asked, of);
  if (definition) return definition;
  const known = [...definitions.keys()].join(", ");
  throw new NotFoundError(`unknown agent definition "${name}"; this runtime has ${known}`);
}

/** The identity of a new root agent: no parent, no account, all tools of its definition. */
export function rootIdentity(
  { tenant, clock }: Pick<RootAgentDependencies, "tenant" | "clock">,
  definition: AgentDefinition,
  agentId: string,
): AgentIdentity {
  return {
    tenant,
    agentId,
    rootAgentId: agentId,
    parentAgentId: null,
    parentTurnId: null,
    parentStep: null,
    parentCallId: null,
    depth: 0,
    definition: definition.ref,
    ownerId: null,
    sessionId: null,
    createdAt: clock.now(),
    accountId: null,
    parentAccountId: null,
    grantedTools: null,
    maxDepth: DEEPEST_TREE,
    turnLimits: null,
    metadata: {},
  };
}

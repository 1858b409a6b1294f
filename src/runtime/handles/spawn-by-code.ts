import { type AgentDefinition, assertGiven, DEFAULT_MAX_DEPTH, grantOf } from "../../agents/index.ts";
import { shortHash } from "../../base/index.ts";
import { agentAccountId, bindingField, bindingOf, limitsOf, turnFlagsOf } from "../../budget/index.ts";
import { PolicyRefusedError } from "../../errors/index.ts";
import { type AgentRecord, childIdOf } from "../../state/index.ts";
import type { RuntimeCore } from "../core/runtime-core.ts";
import type { SpawnAgentOptions } from "../doors/types.ts";

/** Creates the child that code asks for; the same key is the same child. */
export async function createChild(
  core: RuntimeCore,
  parent: AgentRecord,
  definition: AgentDefinition,
  options: SpawnAgentOptions,
): Promise<AgentRecord> {
  assertGiven(core.definitions, definition, "agent.spawn()");
  const depth = parent.depth + 1;
  const maxDepth = Math.min(parent.maxDepth, DEFAULT_MAX_DEPTH);
  if (depth > maxDepth) {
    throw new PolicyRefusedError(`a subagent here would be at depth ${depth}; the policy allows ${maxDepth}`);
  }
  const agentId = childIdOf(parent.rootAgentId, shortHash(`${parent.agentId}\n\n${options.key}`));
  const accountId = agentAccountId(agentId);
  const limits = limitsOf(options.budget);
  const { tenant, rootAgentId, sessionId, ownerId, accountId: parentAccountId } = parent;
  const { record } = await core.stores.createAgent(
    {
      tenant,
      agentId,
      rootAgentId,
      parentAgentId: parent.agentId,
      parentTurnId: null,
      parentStep: null,
      parentCallId: null,
      depth,
      definition: definition.ref,
      ownerId,
      sessionId,
      createdAt: core.clock.now(),
      accountId,
      parentAccountId,
      ...bindingField(bindingOf(limits, parent.binding)),
      ...grantOf({ definition, policy: {} }, parent.deniedTools),
      maxDepth,
      turnLimits: turnFlagsOf(limits),
      metadata: {},
    },
    { id: accountId, agentId, turnId: null, parentId: parentAccountId, limits },
  );
  return record;
}

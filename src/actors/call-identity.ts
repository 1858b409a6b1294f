import type { ModelCallIdentity } from "../model/index.ts";
import type { Host } from "./host.ts";

/** The agent and the step of a model call, as adapters see them. */
export function callIdentity(
  { identity: { agentId, rootAgentId }, definition }: Pick<Host, "identity" | "definition">,
  { turnId, step, attempt }: Pick<ModelCallIdentity, "turnId" | "step" | "attempt">,
): ModelCallIdentity {
  return { agentId, rootAgentId, agentName: definition.name, turnId, step, attempt };
}

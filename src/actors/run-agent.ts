import type { RunAgent } from "../tools/index.ts";
import type { Host } from "./host.ts";

/** The agent as hooks and tools know it. */
export function runAgentOf(host: Pick<Host, "identity">): RunAgent {
  const { agentId, parentAgentId, rootAgentId, depth, sessionId, tenant, definition } = host.identity;
  return { agentId, name: definition.name, parentAgentId, rootAgentId, depth, sessionId, tenant };
}

import type { AgentEvidence, TreeEvidence } from "../../src/testing/simulation/evidence.ts";

/**
 * Everything committed before a process died is unchanged: journals and messages in `before` are prefixes of those in
 * `after`, and an agent whose turns had all ended has no further entries.
 */
export function prefixViolations(before: readonly TreeEvidence[], after: readonly TreeEvidence[]): string[] {
  const later = new Map(after.flatMap(({ agents }) => agents.map((agent) => [agent.agentId, agent] as const)));
  return before.flatMap(({ agents, rootAgentId }) =>
    agents.flatMap((agent) => {
      const known = later.get(agent.agentId);
      if (!known) return [`${agent.agentId}: it is gone`];
      const isChild = agent.agentId !== rootAgentId;
      return [...changes(agent, known), ...(isChild ? repeats(agent, known) : [])];
    }),
  );
}

function changes(before: AgentEvidence, after: AgentEvidence): string[] {
  const { agentId } = before;
  const violations: string[] = [];
  for (const [index, entry] of before.entries.entries()) {
    if (JSON.stringify(entry) === JSON.stringify(after.entries[index])) continue;
    violations.push(`${agentId}: committed entry ${entry.seq} (${entry.type}) has changed`);
    break;
  }
  for (const [index, message] of before.messages.entries()) {
    if (JSON.stringify(message) === JSON.stringify(after.messages[index])) continue;
    violations.push(`${agentId}: committed message ${message.id} has changed`);
    break;
  }
  return violations;
}

/** A child that had ended does not run again. */
function repeats(before: AgentEvidence, after: AgentEvidence): string[] {
  const hadEnded = before.entries.at(-1)?.type === "turn.ended";
  if (!hadEnded || after.entries.length === before.entries.length) return [];
  return [`${before.agentId}: it had ended, and has ${after.entries.length - before.entries.length} more entries`];
}

/** A child has one record and one turn, unless its own children wake it, and its call names only this child. */
export function spawnViolations({ agents }: TreeEvidence): string[] {
  const violations: string[] = [];
  const spawned = new Map<string, string>();
  for (const { agentId, entries } of agents) {
    const asked = new Set<string>();
    for (const entry of entries) {
      if (entry.type !== "child.spawned") continue;
      const by = entry.callId ?? `${agentId} ${entry.childId}`;
      if (asked.has(by)) violations.push(`${by}: spawned twice`);
      asked.add(by);
      if (spawned.has(entry.childId)) violations.push(`${entry.childId}: spawned by two calls`);
      spawned.set(entry.childId, by);
    }
  }
  for (const { agentId, record, entries } of agents) {
    if (record.parentAgentId === null) continue;
    if (!spawned.has(agentId)) violations.push(`${agentId}: a child that no journal spawned`);
    const turns = entries.filter((entry) => entry.type === "turn.started" && entry.wokenBy === undefined).length;
    if (turns > 1) violations.push(`${agentId}: a child with ${turns} turns`);
  }
  return violations;
}

import type { AgentEvidence } from "../../src/testing/simulation/evidence.ts";
import type { WitnessLine } from "../witness.ts";
import type { Kill } from "./pool.ts";

/** The recovery of an agent whose worker was killed while it owned the agent. */
export interface Recovery {
  readonly agentId: string;
  /**
   * Milliseconds from the kill until another process owned the agent; `null` if none has taken it. Counted from the last
   * kill if a worker that had taken its wake job died too.
   */
  readonly ms: number | null;
  /** Whether its turn was still open. */
  readonly wasOpen: boolean;
}

/**
 * Every agent that a killed worker owned, and how long it had no owner afterwards. `taken`: by process id of a dead worker,
 * the agents whose wake jobs it had taken.
 */
export function recoveriesOf(
  agents: readonly AgentEvidence[],
  lines: readonly WitnessLine[],
  kills: readonly Kill[],
  taken: ReadonlyMap<number, readonly string[]>,
): Recovery[] {
  const known = new Map(agents.map((agent) => [agent.agentId, agent]));
  // Each process has its own file, so lines of several processes are not ordered.
  const acquired = lines.filter((line) => line.type === "acquired").toSorted((left, right) => left.epoch - right.epoch);
  const byAgent = Map.groupBy(acquired, ({ agentId }) => agentId);
  /** The time of the last kill of a worker that had taken the agent's wake job in between. */
  const lastDeath = (agentId: string, from: number, to: number): number => {
    const deaths = kills.filter(({ pid, at }) => at > from && at < to && taken.get(pid)?.includes(agentId));
    return Math.max(from, ...deaths.map(({ at }) => at));
  };
  const released = new Set(
    lines.flatMap((line) => (line.type === "released" ? [`${line.agentId} ${line.epoch}`] : [])),
  );
  return acquired.flatMap((lease): Recovery[] => {
    const { agentId, epoch, pid } = lease;
    if (released.has(`${agentId} ${epoch}`)) return [];
    // A long run uses process ids again, so the owner is the first process of that id killed after the lease was acquired.
    const death = kills.filter((kill) => kill.pid === pid && kill.at >= lease.at).toSorted((a, b) => a.at - b.at)[0];
    if (death === undefined) return [];
    const next = byAgent.get(agentId)?.find((other) => other.epoch > epoch);
    // A process that acquired the agent while the worker was still alive got it from the worker.
    if (next && next.at < death.at) return [];
    const end = known.get(agentId)?.entries.findLast(({ type }) => type === "turn.ended");
    const wasOpen = end === undefined || end.epoch > epoch;
    return [{ agentId, ms: next ? next.at - lastDeath(agentId, death.at, next.at) : null, wasOpen }];
  });
}

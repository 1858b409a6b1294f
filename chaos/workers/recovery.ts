import type { AgentEvidence } from "../evidence.ts";
import type { WitnessLine } from "../witness.ts";
import type { Kill } from "./pool.ts";

/** What became of an agent whose worker was killed while it had it. */
export interface Recovery {
  readonly agentId: string;
  /**
   * Milliseconds from the death until another process had the agent; `null` if no process has taken it. Counted from the last
   * death if a worker that had taken its wake died too.
   */
  readonly ms: number | null;
  /** Its turn was still open. */
  readonly wasOpen: boolean;
}

/**
 * Every agent that a killed worker had, and how long it had no owner afterwards. `taken`: by process id of a dead worker, the
 * agents whose wakes it had taken.
 */
export function recoveriesOf(
  agents: readonly AgentEvidence[],
  lines: readonly WitnessLine[],
  kills: readonly Kill[],
  taken: ReadonlyMap<number, readonly string[]>,
): Recovery[] {
  const known = new Map(agents.map((agent) => [agent.agentId, agent]));
  // Each process has a file of its own: lines of several are in no order.
  const acquired = lines.filter((line) => line.type === "acquired").toSorted((left, right) => left.epoch - right.epoch);
  const byAgent = Map.groupBy(acquired, ({ agentId }) => agentId);
  /** When the last of those died who had taken the agent's wake in between. */
  const lastDeath = (agentId: string, from: number, to: number): number => {
    const deaths = kills.filter(({ pid, at }) => at > from && at < to && taken.get(pid)?.includes(agentId));
    return Math.max(from, ...deaths.map(({ at }) => at));
  };
  const released = new Set(
    lines.flatMap((line) => (line.type === "released" ? [`${line.agentId} ${line.epoch}`] : [])),
  );
  return kills.flatMap(({ pid, at }) =>
    acquired.flatMap((lease): Recovery[] => {
      const { agentId, epoch } = lease;
      if (lease.pid !== pid || released.has(`${agentId} ${epoch}`)) return [];
      const next = byAgent.get(agentId)?.find((other) => other.epoch > epoch);
      // A process that came while the worker still lived got the agent from it.
      if (next && next.at < at) return [];
      const end = known.get(agentId)?.entries.findLast(({ type }) => type === "turn.ended");
      const wasOpen = end === undefined || end.epoch > epoch;
      return [{ agentId, ms: next ? next.at - lastDeath(agentId, at, next.at) : null, wasOpen }];
    }),
  );
}

import type { AgentEvidence } from "../../src/testing/simulation/evidence.ts";
import type { WitnessLine } from "../witness.ts";

type Of<Type extends WitnessLine["type"]> = Extract<WitnessLine, { type: Type }>;

/**
 * Compares the stores' answers to processes with their contents: no epoch was assigned twice, no acknowledged entry is
 * missing, and the stores accepted nothing from an owner once another process had the lease (F3, F4, F5). `isComplete`: no
 * process was killed, so every entry was acknowledged to some process.
 */
export function witnessViolations(
  agents: readonly AgentEvidence[],
  lines: readonly WitnessLine[],
  { isComplete = false }: { readonly isComplete?: boolean } = {},
): string[] {
  const acquired = Map.groupBy(linesOf(lines, "acquired"), ({ agentId }) => agentId);
  const committed = Map.groupBy(linesOf(lines, "committed"), ({ agentId }) => agentId);
  const known = new Map(agents.map((agent) => [agent.agentId, agent]));
  const unknown = [...committed.keys()].filter((agentId) => !known.has(agentId));
  return [
    ...unknown.map((agentId) => `${agentId}: its commits were acknowledged, and there is no such agent`),
    ...agents.flatMap((agent) => {
      const commits = committed.get(agent.agentId) ?? [];
      const leases = acquired.get(agent.agentId) ?? [];
      return [...leaseFaults(leases, commits), ...lossFaults(agent, commits, isComplete)].map(
        (text) => `${agent.agentId}: ${text}`,
      );
    }),
  ];
}

/** The same for one life of a Redis that loses acknowledged writes when it dies. Earlier epochs may be assigned again. */
export function ownersOfLife(lines: readonly WitnessLine[]): string[] {
  const acquired = Map.groupBy(linesOf(lines, "acquired"), ({ agentId }) => agentId);
  const committed = Map.groupBy(linesOf(lines, "committed"), ({ agentId }) => agentId);
  return [...new Set([...acquired.keys(), ...committed.keys()])].flatMap((agentId) => {
    const commits = committed.get(agentId) ?? [];
    const faults = leaseFaults(acquired.get(agentId) ?? [], commits);
    const taken = new Set<number>();
    for (const { epoch, first, last } of commits) {
      for (let seq = first; seq <= last; seq += 1) {
        if (taken.has(seq)) faults.push(`entry ${seq} was acknowledged twice, once under epoch ${epoch}`);
        taken.add(seq);
      }
    }
    return faults.map((text) => `${agentId}: ${text}`);
  });
}

function linesOf<Type extends WitnessLine["type"]>(lines: readonly WitnessLine[], type: Type): Of<Type>[] {
  return lines.filter((line): line is Of<Type> => line.type === type);
}

/** One owner at a time: each owner of the lease has its own epoch, and the previous owner writes nothing more. */
function leaseFaults(leases: readonly Of<"acquired">[], commits: readonly Of<"committed">[]): string[] {
  const faults: string[] = [];
  const holders = new Map<number, number>();
  for (const { epoch, pid } of leases) {
    if (holders.has(epoch)) faults.push(`epoch ${epoch} was given to ${holders.get(epoch)} and to ${pid}`);
    holders.set(epoch, pid);
  }
  for (const { epoch, pid, sentAt, first } of commits) {
    const holder = holders.get(epoch);
    if (holder !== undefined && holder !== pid) faults.push(`${pid} wrote under epoch ${epoch}, which ${holder} holds`);
    const next = leases.find((lease) => lease.epoch > epoch && lease.at < sentAt);
    if (!next) continue;
    const late = Math.round(sentAt - next.at);
    faults.push(`seq ${first} was taken under epoch ${epoch}, sent ${late} ms after epoch ${next.epoch} was given`);
  }
  return faults;
}

/** No acknowledged entry is lost, and no position in the journal was assigned twice. */
function lossFaults(
  { entries, messages }: AgentEvidence,
  commits: readonly Of<"committed">[],
  isComplete: boolean,
): string[] {
  const faults: string[] = [];
  const stored = new Set(messages.map(({ id }) => id));
  const taken = new Map<number, number>();
  for (const { epoch, first, last, messageIds } of commits) {
    for (let seq = first; seq <= last; seq += 1) {
      const entry = entries[seq - 1];
      if (entry?.seq !== seq) faults.push(`acknowledged entry ${seq} of epoch ${epoch} is lost`);
      else if (entry.epoch !== epoch)
        faults.push(`entry ${seq} was acknowledged to epoch ${epoch}, and is of ${entry.epoch}`);
      if (taken.has(seq)) faults.push(`entry ${seq} was acknowledged to epoch ${taken.get(seq)} and to ${epoch}`);
      taken.set(seq, epoch);
    }
    const lost = messageIds.filter((id) => !stored.has(id));
    if (lost.length > 0) faults.push(`acknowledged messages are lost: ${lost.join(", ")}`);
  }
  const nobodys = isComplete ? entries.filter(({ seq }) => !taken.has(seq)) : [];
  for (const { seq, epoch } of nobodys) faults.push(`entry ${seq} of epoch ${epoch} was acknowledged to no process`);
  return faults;
}

import type { FeedProcess } from "../feed/wire.ts";
import { type AgentMoment, isBusy } from "./agent-moment.ts";
import type { RunAgent } from "./run-log.ts";

/** The processes that run the agents with an open turn, from the newest status of the feed. */
export interface Owners {
  readonly processes: ReadonlyMap<string, FeedProcess>;
  /** By agent, the id of its process; `null` if no process runs it. Missing if the owner is not known. */
  readonly ofAgents: ReadonlyMap<string, string | null>;
}

/** An agent with unfinished work that no living process runs. */
export interface LostAgent {
  /** The process that ran it; `undefined` if no process has its lease. */
  readonly process: FeedProcess | undefined;
  /** The last time at which the agent is known to have worked. */
  readonly seenAt: number;
}

export const nothingLost: ReadonlyMap<number, LostAgent> = new Map();

/** The lost agents by their index in the log. */
export function lostAgents(
  agents: readonly RunAgent[],
  moments: readonly (AgentMoment | undefined)[],
  { processes, ofAgents }: Owners,
): ReadonlyMap<number, LostAgent> {
  const lost = new Map<number, LostAgent>();
  if (ofAgents.size === 0) return nothingLost;
  for (const { index, agentId } of agents) {
    const moment = moments[index];
    const processId = ofAgents.get(agentId);
    if (!moment || processId === undefined || !isBusy(moment)) continue;
    const process = processId === null ? undefined : processes.get(processId);
    if (process === undefined ? needsOwner(moment) : process.state !== "alive") {
      lost.set(index, { process, seenAt: Math.max(process?.seenAt ?? 0, moment.since) });
    }
  }
  return lost.size === 0 ? nothingLost : lost;
}

/** Whether the agent needs a process now. In other phases an agent can wait without one. */
function needsOwner({ phase, running }: AgentMoment): boolean {
  if (phase === "tools") return running.every(({ queue }) => queue === null);
  return phase === "thinking" || phase === "retrying";
}

/** Why an agent does not continue, in words. */
export function lostWords({ process }: LostAgent): string {
  if (!process) return "no process runs it";
  const { pid, state, isHere } = process;
  if (state === "dead") return `process ${pid} is dead`;
  return `process ${pid}${isHere ? "" : " elsewhere"} gives no sign of life`;
}

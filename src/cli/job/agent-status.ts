import {
  type AgentRecord,
  DEFAULT_TENANT,
  endOfTurn,
  type Entry,
  type StopReason,
  turnIdOf,
} from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { formatNumberOf } from "../view/format.ts";
import { isUnfinished } from "./find-agent.ts";

/** Result of a turn. */
export interface LastTurn {
  readonly status: "completed" | "stopped" | "failed";
  readonly stopReason: StopReason;
}

/** The state of an agent and its subagents, for people. */
export interface AgentStatus {
  /** As returned by `statusOf`. */
  readonly status: string;
  readonly isUnfinished: boolean;
  /** The process that runs it, or null. */
  readonly pid: number | null;
  readonly openRequests: number;
  /** The result of its newest ended turn; null if none has ended yet. */
  readonly lastTurn: LastTurn | null;
}

/** The state of an agent as text, the same in every command. */
export function statusText({ isUnfinished, pid, status, openRequests, lastTurn }: AgentStatus): string {
  if (isUnfinished) {
    if (openRequests > 0) return `unfinished, waits for ${formatNumberOf(openRequests, "decision")}`;
    if (pid !== null) return `unfinished, runs (process ${pid})`;
    return status === "paused" ? "unfinished, paused" : "unfinished";
  }
  const end = status === "failed" ? "failed" : endText(lastTurn);
  return status === "paused" ? `${end}, paused` : end;
}

function endText(lastTurn: LastTurn | null): string {
  if (lastTurn === null) return "no turn yet";
  if (lastTurn.status === "completed") return "finished";
  return lastTurn.status === "failed" ? "failed" : `stopped (${lastTurn.stopReason})`;
}

/** Whether an agent or a subagent has work left; background agents may outlast their root's turn. */
export function isTreeUnfinished(top: AgentRecord, below: readonly AgentRecord[]): boolean {
  return isUnfinished(top) || below.some(({ openTurnId }) => openTurnId !== null);
}

/** The result of an agent's newest turn; null while it is open, and before the first one. Reads only that turn. */
export async function lastTurnOf(stores: Pick<Stores, "lookAtTurn">, record: AgentRecord): Promise<LastTurn | null> {
  const { agentId, openTurnId, turnCount } = record;
  if (openTurnId !== null || turnCount === 0) return null;
  const look = await stores.lookAtTurn({ tenant: DEFAULT_TENANT, agentId }, turnIdOf(agentId, turnCount));
  return lastTurnIn(look?.past?.entries ?? []);
}

/** Like `lastTurnOf`, from the agent's entries. */
export function lastTurnIn(entries: readonly Entry[]): LastTurn | null {
  const end = endOfTurn(entries);
  return end === undefined ? null : { status: end.outcome, stopReason: end.stopReason };
}

import { type AgentRecord, type Lifecycle, type OwnedFields, statusOf } from "../../state/index.ts";
import type { AgentStatus } from "../doors/types.ts";

interface LiveStatus {
  readonly owned: OwnedFields;
  readonly lifecycle: Lifecycle;
  readonly openTurnId: string | null;
}

/** As its activation shows it, or as it was read last where it does not live here. */
export function agentStatusOf(record: AgentRecord, live: LiveStatus | undefined, isShutDown: boolean): AgentStatus {
  const { turnCount, lastActivity, error } = live?.owned ?? record;
  const { metadata } = record;
  return {
    status: isShutDown ? "shutdown" : (live?.lifecycle ?? statusOf(record)),
    turnCount,
    lastActivity,
    ...(error ? { error } : {}),
    ...(Object.keys(metadata).length > 0 ? { metadata } : {}),
    openTurnId: live ? live.openTurnId : record.openTurnId,
  };
}

/** As others are to see it: with the status that its record tells. */
export function listed(record: AgentRecord): AgentRecord {
  return { ...record, status: statusOf(record) };
}

/** Why a turn is not accepted, in words. */
export function notStartedText(agentId: string, status: Lifecycle): string {
  return `agent "${agentId}" is ${status}; call start() before its first turn, and again after shutdown()`;
}

export function busyText(agentId: string, openTurnId: string): string {
  return `agent "${agentId}" is busy with turn ${openTurnId}; wait for it, or pass { ifBusy: "queue" } or { ifBusy: "supersede" }`;
}

import type { AgentRecord } from "../../state/index.ts";
import type { Tables } from "./tables.ts";

export interface StandingMark {
  readonly reason: "paused" | "aborted";
  /** Whose mark it is. */
  readonly agentId: string;
  /** Why, in the words of whoever aborted it. */
  readonly message?: string;
}

/**
 * The mark on the agent or above it that forbids new intents of the turn. An abort counts before a pause, and the one that
 * stands highest before those it was handed down as.
 */
export function standingMark(
  tables: Pick<Tables, "agent">,
  record: AgentRecord,
  ofTurnId: string,
): StandingMark | undefined {
  let paused: StandingMark | undefined;
  let aborted: StandingMark | undefined;
  let turnId: string | null = ofTurnId;
  for (let at: AgentRecord | undefined = record; at; ) {
    const { abort, agentId } = at;
    if (abort && abort.turnId === turnId) aborted = { reason: "aborted", agentId, message: abort.reason };
    if (at.pause) paused ??= { reason: "paused", agentId };
    // One in the background outlasts the turn above: what ends that turn does not end it.
    turnId = at.background ? null : at.parentTurnId;
    at = at.parentAgentId === null ? undefined : tables.agent({ tenant: at.tenant, agentId: at.parentAgentId });
  }
  return aborted ?? paused;
}

/** Whether a pause mark on the agent or above it holds it, whatever else stands there. */
export function isHeld(tables: Pick<Tables, "agent">, record: AgentRecord | undefined): boolean {
  for (let at = record; at; ) {
    if (at.pause) return true;
    at = at.parentAgentId === null ? undefined : tables.agent({ tenant: at.tenant, agentId: at.parentAgentId });
  }
  return false;
}

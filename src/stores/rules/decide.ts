import { type AgentKey, type AgentRequest, type Decision, type InboxItem, verdictsOf } from "../../state/index.ts";
import type { DecideOutcome } from "./outcomes.ts";
import type { DecideOptions } from "./ports.ts";
import { requestTimerId } from "./requests.ts";
import type { Tables } from "./tables.ts";

export interface DecideCommand extends AgentKey, DecideOptions {
  readonly requestId: string;
  readonly decision: Decision;
}

/** Decides a request by compare-and-set on its status: once, whoever comes first (F20). */
export function decide(tables: Tables, command: DecideCommand, now: number): DecideOutcome {
  const { requestId, decision, argumentsHash } = command;
  const request = tables.request(command, requestId);
  if (!request) return { type: "notFound" };
  if (request.status !== "open") return { type: "conflict", request, posted: [] };
  if (isOver(request, now) && decision.verdict !== "expired") {
    // Its alarm may be late; nobody may approve in the meantime.
    return { ...settled(tables, request, { verdict: "expired", by: null, reason: null }, now), type: "conflict" };
  }
  if (!verdictsOf[request.kind].includes(decision.verdict)) return { type: "unfit", request };
  if (argumentsHash !== undefined && argumentsHash !== request.argumentsHash) return { type: "changed", request };
  return { ...settled(tables, request, decision, now), type: "decided" };
}

function isOver({ expiresAt }: AgentRequest, now: number): boolean {
  return expiresAt !== null && now >= expiresAt;
}

function settled(
  tables: Tables,
  open: AgentRequest,
  decision: Decision,
  now: number,
): { request: AgentRequest; posted: string[] } {
  const { tenant, agentId, requestId, turnId, callId } = open;
  const key = { tenant, agentId };
  const request: AgentRequest = { ...open, status: "decided", decision, decidedAt: now };
  tables.putRequest(request);
  const head = tables.head(key);
  tables.putHead(key, { ...head, openRequests: head.openRequests - 1 });
  if (open.expiresAt !== null) tables.clearTimer(key, requestTimerId(requestId));
  const item: InboxItem = {
    kind: "decision",
    key: `decision:${requestId}`,
    at: now,
    requestId,
    turnId,
    callId,
    decision,
  };
  return { request, posted: tables.addToInbox(key, item) ? [agentId] : [] };
}

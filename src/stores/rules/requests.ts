import { stableStringify } from "../../base/index.ts";
import { InvariantError } from "../../errors/index.ts";
import {
  type AgentKey,
  type AgentRequest,
  type Decision,
  type InboxItem,
  type Timer,
  turnIdOf,
  verdictsOf,
} from "../../state/index.ts";
import type { Batch } from "./batch.ts";
import { budgetDecisionOf } from "./budget-requests.ts";
import type { DecideOutcome } from "./outcomes.ts";
import type { DecideOptions } from "./ports.ts";
import type { Tables } from "./tables.ts";

/** How many of the agent's requests are open after a batch, and the timers that were set for them. */
interface RequestChanges {
  readonly open: number;
  readonly timers: readonly Timer[];
}

/** Opens and closes the requests of a batch. */
export function changeRequests(tables: Tables, batch: Batch, openBefore: number): RequestChanges {
  const { key, closedTurnId } = batch;
  const timers = new Map<string, Timer>();
  let open = openBefore;
  for (const request of batch.requests) {
    checkOpening(batch, request);
    if (tables.request(key, request.requestId)) continue;
    tables.putRequest(request);
    open += 1;
    const timer = timerOf(request);
    if (!timer) continue;
    tables.setTimer(timer);
    timers.set(request.requestId, timer);
  }
  const close = (request: AgentRequest): void => {
    tables.putRequest({ ...request, status: "closed" });
    open -= 1;
    if (request.expiresAt !== null) tables.clearTimer(key, requestTimerId(request.requestId));
    timers.delete(request.requestId);
  };
  for (const requestId of batch.closedRequests) {
    const request = tables.request(key, requestId);
    if (request?.status === "open") close(request);
  }
  if (closedTurnId !== null && open > 0) {
    for (const request of tables.openRequestsOf(key, closedTurnId)) close(request);
  }
  return { open, timers: [...timers.values()] };
}

function timerOf({ tenant, agentId, requestId, expiresAt }: AgentRequest): Timer | undefined {
  if (expiresAt === null) return undefined;
  return { kind: "request", tenant, agentId, id: requestTimerId(requestId), dueAt: expiresAt, requestId };
}

function checkOpening({ id, key }: Batch, { tenant, agentId, requestId, status, decision }: AgentRequest): void {
  if (tenant === key.tenant && agentId === key.agentId && status === "open" && decision === null) return;
  throw new InvariantError(
    `batch ${id} of agent ${key.agentId} contains request ${requestId} of agent ${agentId} (${status}); expected its own open requests`,
  );
}

interface DecideCommand extends AgentKey, DecideOptions {
  readonly requestId: string;
  readonly decision: Decision;
}

/** Decides a request by compare-and-set on its status: only the first decision counts (F20). */
export function decide(tables: Tables, command: DecideCommand, now: number): DecideOutcome {
  const { requestId, argumentsHash } = command;
  const request = tables.request(command, requestId);
  if (!request) return { type: "notFound" };
  const { decision, key } = command;
  const meaning = key === undefined ? undefined : tables.meaningOf(rootOf(request), key);
  if (meaning) {
    const decidedId = "requestId" in meaning ? meaning.requestId : undefined;
    const isSame = decidedId === requestId && stableStringify(request.decision) === stableStringify(decision);
    return isSame ? { type: "known", request } : { type: "taken", turnId: meaning.turnId, requestId: decidedId };
  }
  if (request.status !== "open") return { type: "conflict", request, posted: [] };
  if (isOver(request, now) && decision.verdict !== "expired") {
    // Its timer may be late; a decision that arrives before the timer is refused as well.
    return { ...settled(tables, request, { verdict: "expired", by: null, reason: null }, now), type: "conflict" };
  }
  if (!verdictsOf[request.kind].includes(decision.verdict)) return { type: "unfit", request };
  if (argumentsHash !== undefined && argumentsHash !== request.argumentsHash) return { type: "changed", request };
  return { ...settled(tables, request, decision, now, key), type: "decided" };
}

function rootOf({ tenant, rootAgentId }: AgentRequest): AgentKey {
  return { tenant, agentId: rootAgentId };
}

function isOver({ expiresAt }: AgentRequest, now: number): boolean {
  return expiresAt !== null && now >= expiresAt;
}

function settled(
  tables: Tables,
  open: AgentRequest,
  decision: Decision,
  now: number,
  decisionKey?: string,
): { request: AgentRequest; posted: string[] } {
  const { tenant, agentId, requestId, turnId, callId } = open;
  const key = { tenant, agentId };
  const withKey = decisionKey === undefined ? {} : { decisionKey };
  const decidedWith =
    decisionKey === undefined ? {} : { decidedWith: { key: decisionKey, turnId: turnOfTree(tables, open) } };
  const request: AgentRequest = { ...open, status: "decided", decision, decidedAt: now, ...decidedWith };
  tables.putRequest(request);
  const head = tables.head(key);
  tables.putHead(key, { ...head, openRequests: head.openRequests - 1 });
  if (open.expiresAt !== null) tables.clearTimer(key, requestTimerId(requestId));
  const common = { key: `decision:${requestId}`, at: now };
  const item: InboxItem =
    open.kind === "budget"
      ? { kind: "budget.freed", ...common, decided: budgetDecisionOf(request, decision) }
      : { kind: "decision", ...common, requestId, turnId, callId, decision, ...withKey };
  return { request, posted: tables.addToInbox(key, item) ? [agentId] : [] };
}

/** The open turn of the root agent, else its last turn. */
function turnOfTree(tables: Tables, request: AgentRequest): string {
  const { agentId } = rootOf(request);
  const root = tables.agent(rootOf(request));
  return root?.openTurnId ?? turnIdOf(agentId, Math.max(1, (root?.nextTurnNumber ?? 1) - 1));
}

export function requestTimerId(requestId: string): string {
  return `request:${requestId}`;
}

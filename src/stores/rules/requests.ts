import { InvariantError } from "../../errors/index.ts";
import type { AgentRequest, Timer } from "../../state/index.ts";
import type { Batch } from "./batch.ts";
import type { Tables } from "./tables.ts";

export function requestTimerId(requestId: string): string {
  return `request:${requestId}`;
}

/** What became of an agent's requests in a batch: how many are open now, and the alarms that were set for them. */
export interface RequestChanges {
  readonly open: number;
  readonly timers: readonly Timer[];
}

/** Opens and closes the requests of a batch. One that opens and closes none does not look for any. */
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
    `batch ${id} of agent ${key.agentId} brings request ${requestId} of agent ${agentId}, ${status}; it takes open ones of its own`,
  );
}

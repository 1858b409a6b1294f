import type { AgentRequest, Decision } from "../../src/state/index.ts";
import { callIdOf, requestIdOf } from "../../src/state/index.ts";
import type { MakeEntry } from "./entry-fixtures.ts";
import { NOW } from "./names.ts";
import type { BatchParts, Owner } from "./stores-fixtures.ts";

export const approved: Decision = { verdict: "approved", by: "ann", reason: null };
export const rejected: Decision = { verdict: "rejected", by: "bob", reason: "too dear" };

/** An open request of the owner's first turn; `index` is the position of its call. */
export function requestOf({ key }: Owner, index: number, changes: Partial<AgentRequest> = {}): AgentRequest {
  const turnId = changes.turnId ?? `${key.agentId}#1`;
  const callId = callIdOf(turnId, 1, index);
  return {
    tenant: key.tenant,
    requestId: requestIdOf(callId, 1),
    agentId: key.agentId,
    agentName: "clerk",
    rootAgentId: key.agentId.split("~")[0] ?? key.agentId,
    turnId,
    step: 1,
    callId,
    kind: "approval",
    name: "pay",
    arguments: { amount: 5 },
    argumentsHash: "h5",
    prompt: "May it pay 5?",
    actorId: "ann",
    openedAt: NOW,
    expiresAt: null,
    status: "open",
    decision: null,
    decidedAt: null,
    ...changes,
  };
}

/** Opens the requests, with their journal entries. */
export function opening(...requests: AgentRequest[]): BatchParts {
  const entries = requests.map((request): MakeEntry => {
    const { turnId, step, callId, requestId, kind, name, argumentsHash, prompt, expiresAt } = request;
    const told = { turnId, step, callId, requestId, kind, name, argumentsHash, prompt, expiresAt };
    return (envelope) => ({ type: "request.opened", ...envelope, ...told });
  });
  return { entries, requests };
}

import { type Account, openAccount } from "../../../src/budget/index.ts";
import type {
  AgentOverview,
  AgentRequest,
  TroupeEvent,
  TroupeEventBody,
  TroupeEventOf,
} from "../../../src/state/index.ts";

/** An agent in the middle of its first turn. */
export function agentSample(changes: Partial<AgentOverview> = {}): AgentOverview {
  return {
    agentId: "ask-mibodu",
    name: "lead",
    parentAgentId: null,
    rootAgentId: "ask-mibodu",
    status: "busy",
    turns: 1,
    turnId: `${changes.agentId ?? "ask-mibodu"}#1`,
    activity: "thinking",
    step: 2,
    steps: 2,
    toolCalls: 3,
    runningTools: {},
    openRequests: {},
    usage: { inputTokens: 1_000, outputTokens: 200 },
    costMicros: 0,
    text: "",
    startedAt: 1_000,
    endedAt: null,
    stopReason: null,
    message: null,
    prompt: "What is it?",
    ...changes,
  };
}

export function readerSample(hash: string, changes: Partial<AgentOverview> = {}): AgentOverview {
  const agentId = `ask-mibodu~${hash}`;
  return agentSample({ agentId, name: "reader", parentAgentId: "ask-mibodu", turnId: `${agentId}#1`, ...changes });
}

export function accountSample(changes: Partial<Account> = {}): Account {
  const agentId = changes.agentId ?? "ask-mibodu";
  const opened = openAccount({ id: `turn:${agentId}#1`, agentId, turnId: `${agentId}#1`, parentId: null, limits: {} });
  return { ...opened, ...changes };
}

export function used(amounts: Partial<Account["used"]>): Account["used"] {
  return { ...accountSample().used, ...amounts };
}

/** A piece of an answer, from its beginning or a later offset. */
export function deltaSample(text: string, offset = 0) {
  return eventSample({ type: "text.delta", text, offset, attempt: 1, after: null, cursor: null });
}

type EventParts<Body extends TroupeEventBody> = Body &
  Partial<Pick<TroupeEvent, "agentId" | "agentName" | "at" | "step" | "cursor">>;

export function eventSample<Body extends TroupeEventBody>(parts: EventParts<Body>) {
  return {
    agentId: "ask-mibodu",
    agentName: "lead",
    parentAgentId: null,
    rootAgentId: "ask-mibodu",
    sessionId: null,
    turnId: "ask-mibodu#1",
    step: 1,
    at: 1_000,
    cursor: "1.1.0",
    ...parts,
  };
}

const endParts = {
  stopReason: "completed",
  text: "It is so. (a.md:1)",
  steps: 3,
  toolCalls: 2,
  usage: { inputTokens: 10, outputTokens: 2 },
  costMicros: 0,
  message: null,
} as const;

export function completedSample() {
  return eventSample({ type: "turn.completed", ...endParts });
}

export function stoppedSample() {
  return eventSample({
    type: "turn.stopped",
    ...endParts,
    text: "",
    stopReason: "token_limit",
    message: "lead, this turn: 50,000 of 50,000 tokens",
  });
}

export function failedSample() {
  const error = { code: "model_error", message: "no\nroute", retryable: false };
  return eventSample({ type: "turn.failed", ...endParts, text: "", stopReason: "error", error });
}

/** An undecided approval of a payment. */
export function requestSample(changes: Partial<AgentRequest> = {}): AgentRequest {
  return {
    tenant: "default",
    requestId: "ask-mibodu#1:1:0:1",
    agentId: "ask-mibodu",
    agentName: "lead",
    rootAgentId: "ask-mibodu",
    turnId: "ask-mibodu#1",
    step: 1,
    callId: "ask-mibodu#1:1:0",
    kind: "approval",
    name: "pay",
    arguments: { to: "Ann" },
    argumentsHash: "0123",
    prompt: 'pay({"to":"Ann"})',
    actorId: null,
    openedAt: 1_000,
    expiresAt: null,
    status: "open",
    decision: null,
    decidedAt: null,
    ...changes,
  };
}

export function openedSample(changes: Partial<Pick<AgentRequest, "requestId" | "callId" | "kind" | "prompt">> = {}) {
  const { requestId, callId, kind, name, prompt, expiresAt } = requestSample(changes);
  return eventSample({ type: "request.opened", requestId, callId, kind, name, prompt, expiresAt });
}

export function decidedSample(changes: Partial<TroupeEventOf<"request.decided">> = {}) {
  const { requestId, callId, kind, name } = requestSample();
  const decision = { verdict: "approved", by: "anna", reason: null } as const;
  return { ...eventSample({ type: "request.decided", requestId, callId, kind, name, ...decision }), ...changes };
}

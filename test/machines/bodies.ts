import { type Entry, type EntryBody, type EntryOf, noHooks } from "../../src/state/index.ts";

/** Entry bodies for one turn of the agent `desk`, with every field set; a test overrides the fields it checks. */
export const turnId = "desk#1";
export const accountId = `turn:${turnId}`;

export function callIdAt(index: number, step = 1): string {
  return `${turnId}:${step}:${index}`;
}

export const reservation = { accountId, tokens: 300, costMicros: 0, outputTokens: 256, model: "scripted" };
const usage = { inputTokens: 15, outputTokens: 5 };
const settlement = { reservation, tokens: 20, costMicros: 0, usage, unconfirmed: false };
export const failure = { code: "broken", message: "it broke", retryable: false };

/** The bodies as journal entries: numbered from seq 1, one millisecond apart, under epoch 1. */
export function journalOf(bodies: readonly EntryBody[]): Entry[] {
  return bodies.map((body, index) => at(body, index + 1));
}

export function at<Body extends EntryBody>(body: Body, seq: number, epoch = 1): Entry & Body {
  return { ...body, seq, at: 1_000 + seq, epoch } as unknown as Entry & Body;
}

type Body<Type extends EntryBody["type"]> = Extract<EntryBody, { type: Type }>;
type Parts<Type extends EntryBody["type"]> = Partial<Omit<Body<Type>, "type">>;

export function turnStarted(parts: Parts<"turn.started"> = {}): Body<"turn.started"> {
  return {
    type: "turn.started",
    turnId,
    number: 1,
    inputMessageIds: [`${turnId}:in`],
    actorId: null,
    definition: { name: "desk", hash: "h" },
    model: { name: "scripted", provider: "scripted" },
    tools: [],
    limits: {},
    accountId,
    maxConsecutiveToolFailures: 2,
    hooks: noHooks,
    ...parts,
  };
}

export function modelRequested(step = 1, attempt = 1): Body<"model.requested"> {
  const ask = {
    accountId,
    agentId: "desk",
    key: "turn:1",
    promptTokens: 44,
    promptBound: 44,
    outputTokens: 256,
    minimumOutputTokens: 256,
    price: null,
    opensStep: attempt === 1,
    model: "scripted",
  };
  return {
    type: "model.requested",
    turnId,
    step,
    attempt,
    model: "scripted",
    promptHash: "p",
    messageId: `${turnId}:${step}`,
    ask,
    price: null,
    reservation,
  };
}

/** `calls`: the number of tool calls in the answer. */
export function modelResponded(step = 1, calls = 0, parts: Parts<"model.responded"> = {}): Body<"model.responded"> {
  return {
    type: "model.responded",
    turnId,
    step,
    attempt: 1,
    model: "scripted",
    messageId: `${turnId}:${step}`,
    hasText: calls === 0,
    calls: Array.from({ length: calls }, (_, index) => ({ callId: callIdAt(index, step), name: "look" })),
    usage,
    costMicros: null,
    finishReason: calls === 0 ? "stop" : "tool_calls",
    durationMs: 3,
    settlement,
    ...parts,
  };
}

export function modelFailed(retryAt: number | null, parts: Parts<"model.failed"> = {}): Body<"model.failed"> {
  return {
    type: "model.failed",
    turnId,
    step: 1,
    attempt: 1,
    model: "scripted",
    error: failure,
    retryAt,
    usage: null,
    settlement,
    ...parts,
  };
}

export function callGated(index = 0, step = 1, parts: Parts<"call.gated"> = {}): Body<"call.gated"> {
  return {
    type: "call.gated",
    turnId,
    step,
    callId: callIdAt(index, step),
    name: "look",
    verdict: "allowed",
    kind: "function",
    effect: "none",
    arguments: { q: 1 },
    argumentsHash: "a",
    message: null,
    ...parts,
  };
}

export function toolStarted(index = 0, step = 1, attempt = 1): Body<"tool.started"> {
  const callId = callIdAt(index, step);
  return {
    type: "tool.started",
    turnId,
    step,
    callId,
    name: "look",
    attempt,
    effect: "none",
    idempotencyKey: callId,
    accountId,
  };
}

export function toolRetrying(index = 0, step = 1): Body<"tool.retrying"> {
  return {
    type: "tool.retrying",
    turnId,
    step,
    callId: callIdAt(index, step),
    attempt: 1,
    error: failure,
    retryAt: 2_000,
  };
}

export function toolSettled(
  index = 0,
  step = 1,
  outcome: EntryOf<"tool.settled">["outcome"] = "success",
): Body<"tool.settled"> {
  const callId = callIdAt(index, step);
  const error = outcome === "success" ? null : failure;
  return {
    type: "tool.settled",
    turnId,
    step,
    callId,
    name: "look",
    outcome,
    messageId: callId,
    durationMs: 2,
    error,
    artifactId: null,
  };
}

export function childSpawned(index = 0, step = 1): Body<"child.spawned"> {
  return {
    type: "child.spawned",
    turnId,
    step,
    callId: callIdAt(index, step),
    childId: `desk~${index}`,
    childTurnId: `desk~${index}#1`,
    definition: { name: "reader", hash: "h" },
    accountId,
  };
}

export function childEnded(index = 0, step = 1): Body<"child.ended"> {
  return {
    type: "child.ended",
    turnId,
    step,
    callId: callIdAt(index, step),
    childId: `desk~${index}`,
    childTurnId: `desk~${index}#1`,
    outcome: "completed",
    stopReason: "completed",
    text: "read",
    error: null,
  };
}

/** A call's child in the background. */
export function backgroundSpawned(index = 0): Body<"child.spawned"> {
  return { ...childSpawned(index), background: { onEnd: "keep" } };
}

export function childAwaited(index = 0): Body<"child.awaited"> {
  return { type: "child.awaited", turnId, step: 1, callId: callIdAt(index), childId: `desk~${index}` };
}

/** A queued tool that has requested a child and left its result to the child. */
export function childOrdered(index = 0): Body<"child.ordered"> {
  const childId = `desk~${index}`;
  const spawns = [{ key: "k", childId, definition: "reader", input: "read", limits: {} }];
  return { type: "child.ordered", turnId, step: 1, callId: callIdAt(index), spawns, awaits: childId };
}

/** The end of a background child: within the turn or, without `turnId`, between two turns. */
export function childReported(index = 0, parts: Parts<"child.reported"> = {}): Body<"child.reported"> {
  return {
    type: "child.reported",
    turnId,
    childId: `desk~${index}`,
    childTurnId: `desk~${index}#1`,
    name: "reader",
    outcome: "completed",
    stopReason: "completed",
    text: "read",
    error: null,
    messageId: `desk~${index}#1:report`,
    actorId: null,
    wakes: false,
    ...parts,
  };
}

/** A wait for these children, all of them or any. */
export function callWaiting(children: number, wanted: "all" | "any" = "all"): Body<"call.waiting"> {
  const childIds = Array.from({ length: children }, (_, index) => `desk~${index}`);
  const callId = callIdAt(0);
  return { type: "call.waiting", turnId, step: 1, callId, childIds, openIds: childIds, for: wanted, until: 9_000 };
}

export const callExpired: Body<"call.expired"> = { type: "call.expired", turnId, step: 1, callId: callIdAt(0) };

export function refused(
  reason: EntryOf<"intent.refused">["reason"],
  intent: EntryOf<"intent.refused">["intent"] = "model.requested",
  parts: Parts<"intent.refused"> = {},
): Body<"intent.refused"> {
  const limit = reason === "budget" ? ({ accountId, limit: "maxTokens" } as const) : {};
  return { type: "intent.refused", turnId, step: 1, intent, reason, ...limit, ...parts };
}

export function hookApplied(
  hook: EntryOf<"hook.applied">["hook"],
  index = 0,
  patch: Partial<EntryOf<"hook.applied">["patch"]> = {},
): Body<"hook.applied"> {
  const nothing = { addedMessageIds: [], edited: [], removedMessageIds: [], stop: null, continueRequested: false };
  return { type: "hook.applied", turnId, step: 1, hook, plugin: "agent", index, patch: { ...nothing, ...patch } };
}

export function stopSignalled(
  reason: EntryOf<"stop.signalled">["signal"]["reason"] = "user_requested",
): Body<"stop.signalled"> {
  return { type: "stop.signalled", turnId, signal: { reason, message: `because of ${reason}`, source: "test" } };
}

export function turnEnded(
  outcome: EntryOf<"turn.ended">["outcome"] = "completed",
  parts: Parts<"turn.ended"> = {},
): Body<"turn.ended"> {
  return {
    type: "turn.ended",
    turnId,
    number: 1,
    outcome,
    stopReason: outcome === "completed" ? "completed" : outcome === "failed" ? "error" : "user_requested",
    signal: null,
    outputMessageId: null,
    steps: 1,
    toolCalls: 0,
    usage,
    costMicros: null,
    error: outcome === "failed" ? failure : null,
    lifecycle: outcome === "failed" ? "failed" : "ready",
    ...parts,
  };
}

export const starting: Body<"agent.starting"> = { type: "agent.starting" };
export const started: Body<"agent.started"> = { type: "agent.started", definition: { name: "desk", hash: "h" } };
export const shutDown: Body<"agent.shutdown"> = { type: "agent.shutdown" };
export const pausing: Body<"agent.pausing"> = { type: "agent.pausing", turnId, by: "user" };
export const paused: Body<"agent.paused"> = { type: "agent.paused", turnId };
export const resumed: Body<"agent.resumed"> = { type: "agent.resumed", turnId, by: "user", to: "busy" };
export const budgetFreed: Body<"budget.freed"> = { type: "budget.freed", turnId };

import { faultPoint } from "../base/index.ts";
import { agentAccountId } from "../budget/index.ts";
import {
  type CallState,
  costOfExecution,
  declareCall,
  type EntryOf,
  errorsOf,
  isFailure,
  lastStepOf,
  type Lifecycle,
  type Message,
  naturalStopReason,
  type OpenRequest,
  stepMetadata,
  type StopReason,
  type StopSignal,
  type StoredError,
  strongestSignal,
  textOf,
  type TurnOutcome,
  type TurnState,
  type Usage,
  usageOf,
  type WakingReport,
  wasForceStopped,
} from "../state/index.ts";
import type { BudgetMove, Post, WakeOrder } from "../stores/index.ts";
import { waitTimerId } from "./background-calls.ts";
import { begunCalls, cancelCalls } from "./cancel-calls.ts";
import { warnOfLength } from "./compact.ts";
import { turnEffect } from "./effect.ts";
import { releaseHeld } from "./hook-run.ts";
import type { Host, Withdrawal } from "./host.ts";
import { emptySettlement, settlementOf, unconfirmedSettlement } from "./model-cost.ts";
import { attemptKeyOf } from "./run-tool.ts";
import { resultOfSpawn } from "./subagent-calls.ts";
import { requestKeyOf } from "./think.ts";
import { errorResult, settleCall, settleEnded, unknownResult } from "./tool-calls.ts";

/** Appends `turn.ended`: its outcome, its cost, and the posts with the result. */
export const endTurn = turnEffect("endTurn", async (host, { turnId }, interrupted) => {
  // Intents granted only now must be settled too, and no entry may follow the one that ends the turn.
  while (host.undelivered().length > 0) await host.delivered();
  const turn = host.turn(turnId);
  if (!turn || interrupted.aborted) return;
  if (turn.heldMessageIds.length > 0) releaseHeld(host, turnId);
  const left = {
    code: "turn_ended",
    message: "the turn ended without waiting for this call of generate()",
    retryable: false,
  };
  settleOpenGenerates(host, turn, left);
  const { signal, outcome, stopReason, closing, text } = endOf(host, turn);
  const outputMessageId = closing?.id ?? turn.outputMessageId;
  // The turn that makes the conversation too long emits the warning, not the next one.
  if (host.definition.maxMessages !== undefined) warnOfLength(host, turnId, closing ? [closing] : []);
  const waking = wakingAfter(host, turn, { stopReason });
  const error = outcome === "failed" ? (errorsOf(turn.execution).at(-1) ?? errorOfSignal(signal)) : null;
  host.append(
    {
      type: "turn.ended",
      turnId,
      number: turn.number,
      outcome,
      stopReason,
      signal,
      outputMessageId,
      steps: turn.step,
      toolCalls: turn.toolCalls,
      usage: usageOf(turn.execution),
      costMicros: costOfExecution(turn.execution),
      error,
      lifecycle: lifecycleAfter(host, outcome),
      ...(waking.length > 0 ? { waking: [...waking] } : {}),
    },
    {
      messages: closing ? [closing] : [],
      posts: [
        ...turn.openChildIds.map((childId) => abortPost(host, childId, signal ?? undefined)),
        ...endPosts(host, turn, {
          outcome,
          stopReason,
          text: outcome === "failed" ? (error?.message ?? text) : text,
          error,
        }),
      ],
      moves: backgroundMoves(turn),
      wake: wakeFor(waking),
    },
  );
  faultPoint("turn.result");
});

/** The turn's end if it ended now, derived from its fold. */
export function endOf(host: Host, turn: TurnState) {
  const signal = strongestSignal(turn.execution.continuation.stopSignals) ?? refusalIn(turn) ?? null;
  const { outcome, stopReason } = verdictOf(turn, signal);
  const closing = closingMessage(host, turn, outcome, signal);
  const text = textOf((closing ?? host.message(turn.outputMessageId ?? ""))?.content ?? "");
  return { signal, outcome, stopReason, closing, text };
}

/** The stop of a turn whose last answer is a refusal; hooks could still have asked the model again. */
function refusalIn({ execution }: TurnState): StopSignal | undefined {
  if (naturalStopReason(execution) !== "refusal") return undefined;
  return { reason: "refusal", message: "the model or its provider refused to answer", source: "model" };
}

/** A pause that arrived while the turn was ending takes effect after it. */
function lifecycleAfter(host: Host, outcome: TurnOutcome): Lifecycle {
  if (host.isPausing) return "paused";
  return outcome === "failed" ? "failed" : "ready";
}

function verdictOf(turn: TurnState, signal: StopSignal | null): { outcome: TurnOutcome; stopReason: StopReason } {
  if (signal) {
    if (isFailure(signal.reason)) return { outcome: "failed", stopReason: signal.reason };
    return { outcome: wasForceStopped(signal.reason) ? "stopped" : "completed", stopReason: signal.reason };
  }
  return { outcome: "completed", stopReason: naturalStopReason(turn.execution) };
}

function errorOfSignal(signal: StopSignal | null) {
  return { code: "turn_failed", message: signal?.message ?? "the turn failed", retryable: false };
}

/** The message of a stopped turn without any text. */
function closingMessage(
  host: Host,
  turn: TurnState,
  outcome: TurnOutcome,
  signal: StopSignal | null,
): Message | undefined {
  if (outcome !== "stopped" || turn.outputMessageId !== null || !signal) return undefined;
  const why = signal.limit === "maxSteps" ? `step limit (${turn.step}) reached (${signal.message})` : signal.message;
  return {
    id: `${turn.turnId}:end`,
    role: "assistant",
    createdAt: host.clock.now(),
    content: `Task incomplete: ${why}`,
    origin: "runtime",
    metadata: stepMetadata(host.identity.agentId, {
      turnId: turn.turnId,
      step: Math.max(1, turn.step),
      isTrace: false,
    }),
  };
}

type TurnEnd = Pick<EntryOf<"child.ended">, "outcome" | "stopReason" | "text" | "error">;

/** Posts the end of a child's first turn to its parent. Later turns are not reported. */
function endPosts(host: Host, turn: TurnState, end: TurnEnd): Post[] {
  const { parentAgentId, parentTurnId, parentStep, parentCallId, agentId, background, definition } = host.identity;
  if (parentAgentId === null || turn.number > 1) return [];
  const at = host.clock.now();
  const leavesWork = host.background.running().length > 0 || turn.leavingIds.length > 0;
  const child = { childId: agentId, childTurnId: turn.turnId, ...end, ...(leavesWork ? { leavesWork } : {}) };
  if (background) {
    const { onEnd } = background;
    const key = `child.reported:${turn.turnId}`;
    const { actorId } = turn;
    return [
      {
        agentId: parentAgentId,
        item: { kind: "child.reported", key, at, name: definition.name, onEnd, actorId, ...child },
      },
    ];
  }
  if (parentTurnId === null || parentStep === null) return [];
  const key = `child.ended:${turn.turnId}`;
  return [
    {
      agentId: parentAgentId,
      item: { kind: "child.ended", key, at, parentTurnId, step: parentStep, callId: parentCallId, ...child },
    },
  ];
}

/**
 * Child accounts that outlive the turn's account: those of background children, and of children that left background children
 * behind.
 */
function backgroundMoves(turn: TurnState): BudgetMove[] {
  const { accountId, backgroundIds, leavingIds, waking } = turn;
  const childIds = new Set([...backgroundIds, ...leavingIds, ...waking.flatMap(({ childId }) => childId ?? [])]);
  if (childIds.size === 0) return [];
  return [{ type: "background", accountId, childAccountIds: [...childIds].map(agentAccountId) }];
}

/** The turn that answers the messages. Inputs of a person open it with a budget of its own. */
function wakeFor(waking: readonly WakingReport[]): WakeOrder | undefined {
  const [first] = waking;
  const inputs = waking.filter(({ childId }) => childId === null);
  const [input] = inputs;
  if (input) return { actorId: input.actorId, inputMessageIds: inputs.map(({ messageId }) => messageId) };
  return first && { childId: first.childId ?? undefined, actorId: first.actorId };
}

/**
 * Messages that no model call of the turn has seen and that require another turn; none if a user ended the turn. Inputs of a subagent open
 * no turn, because its parent may have ended it.
 */
function wakingAfter(
  host: Host,
  turn: TurnState,
  { stopReason }: Pick<TurnEnd, "stopReason">,
): readonly WakingReport[] {
  if (stopReason === "user_requested") return [];
  const isRoot = host.identity.parentAgentId === null;
  return isRoot ? turn.waking : turn.waking.filter(({ childId }) => childId !== null);
}

/**
 * Settles all open work, so that the turn can end with a legal history: the model call in flight, calls of `generate()`, and each
 * tool call. Awaited children end with their turn.
 */
export const interruptOpenWork = turnEffect("interruptOpenWork", async (host, { turnId }, interrupted) => {
  const cancelled = new Set<string>();
  const withdrawn = new Map<string, Withdrawal>();
  // Calls continue until they have their results: any of them may propose an intent, and results behind that intent are not in
  // the fold yet. So each wait is followed by another check, and nothing is awaited after the last check: no call gets two
  // results.
  for (;;) {
    while (host.undelivered().length > 0) await host.delivered();
    if (interrupted.aborted) return;
    const begun = begunCalls(host, turnId).filter(({ call }) => !cancelled.has(call.callId));
    const queued = queuedCalls(host, turnId).filter((call) => !withdrawn.has(attemptOf(call)));
    if (begun.length > 0) {
      for (const { call } of begun) cancelled.add(call.callId);
      await cancelCalls(host, begun, interrupted);
    } else if (queued.length > 0) {
      const withdrawing = queued.map(async (call) => {
        withdrawn.set(attemptOf(call), await withdraw(host, call, interrupted));
      });
      await Promise.all(withdrawing);
    } else break;
  }
  const turn = host.turn(turnId);
  if (!turn) return;
  const signal = strongestSignal(turn.execution.continuation.stopSignals);
  settleOpenGenerates(host, turn, interruption(signal));
  const { step } = turn;
  for (const callId of turn.unreviewedCallIds) host.append({ type: "call.reviewed", turnId, step, callId });
  for (const callId of turn.openCallIds) {
    // Calls of an answer that arrived after the stop were never started, and have no machine.
    const call = host.call(turnId, callId) ?? declareCall(callId, nameOfCall(turn, callId));
    if (call.outcome === null) settleInterrupted(host, call, signal, withdrawn.get(attemptOf(call)));
  }
  if (turn.openRequest) cutRequest(host, turn, turn.openRequest, signal);
});

/** Settles open calls of `generate()` in full: their code has ended without waiting for the answers. */
function settleOpenGenerates(host: Host, turn: TurnState, error: StoredError): void {
  const { turnId } = turn;
  const step = Math.max(1, turn.step);
  for (const { run, index, reservation } of turn.openGenerates) {
    const settlement = unconfirmedSettlement(reservation);
    host.append(
      { type: "generate.failed", turnId, step, run, index, error, usage: null, settlement },
      { moves: [{ type: "settle", settlement }] },
    );
  }
}

function nameOfCall(turn: TurnState, callId: string): string {
  return lastStepOf(turn.execution)?.toolExecutions.find((one) => one.callId === callId)?.name ?? "";
}

function interruption(signal: StopSignal | undefined) {
  return { code: "turn_interrupted", message: signal?.message ?? "the turn was stopped", retryable: false };
}

function cutRequest(host: Host, turn: TurnState, open: OpenRequest, signal: StopSignal | undefined): void {
  const requested = host
    .memory(turn.turnId)
    .entries.findLast((entry): entry is EntryOf<"model.requested"> => entry.type === "model.requested");
  const outputTokens = host.notes.takeCut(requestKeyOf(open));
  const known = outputTokens !== undefined && requested !== undefined && open.epoch === host.epoch;
  const usage: Usage | null = known ? { inputTokens: requested.ask.promptTokens, outputTokens, estimated: true } : null;
  const settlement = usage
    ? settlementOf(open.reservation, usage, { price: requested?.price ?? null })
    : isUnasked(host, open)
      ? emptySettlement(open.reservation)
      : unconfirmedSettlement(open.reservation);
  const { step, attempt, model } = open;
  const error = interruption(signal);
  host.append(
    { type: "model.failed", turnId: turn.turnId, step, attempt, model, error, retryAt: null, usage, settlement },
    { moves: [{ type: "settle", settlement }] },
  );
}

/** Whether the call was granted in this activation, and the turn was stopped before the call was made. */
function isUnasked(host: Host, open: OpenRequest): boolean {
  const key = requestKeyOf(open);
  return open.epoch === host.epoch && !host.notes.wasAsked(key) && !host.inFlight.has(key);
}

function queuedCalls(host: Host, turnId: string): CallState[] {
  return host.turn(turnId)?.queuedCallIds.flatMap((callId) => host.call(turnId, callId) ?? []) ?? [];
}

/** Whether a worker has started the call is known only after it was withdrawn from its queue. */
async function withdraw(host: Host, call: CallState, interrupted: AbortSignal): Promise<Withdrawal> {
  const signals = host.turn(call.turnId)?.execution.continuation.stopSignals ?? [];
  return await host.queue.withdraw(call, interruptionText(strongestSignal(signals)), interrupted);
}

function attemptOf({ callId, attempt }: CallState): string {
  return attemptKeyOf(callId, attempt);
}

function settleInterrupted(
  host: Host,
  call: CallState,
  signal: StopSignal | undefined,
  withdrawn: Withdrawal | undefined,
): void {
  if (withdrawn && "end" in withdrawn && withdrawn.end.type === "settled") {
    return settleEnded(host, call, withdrawn.end, { isUnreviewed: true });
  }
  const why = isUnbegun(host, call) && signal?.limit ? `Not run: ${signal.message}` : interruptionText(signal);
  const isBegun = withdrawn && "isBegun" in withdrawn ? withdrawn.isBegun : call.startedEpoch !== null;
  const ranOnce = isBegun && call.gate?.effect === "once" && call.childId === null;
  // The call has started a background child, which continues.
  const spawned = resultOfSpawn(call);
  if (spawned) return settleCall(host, call, spawned, { isUnreviewed: true });
  const clearedTimers = call.wait ? [waitTimerId(call.callId)] : [];
  const result = ranOnce ? unknownResult(call.name, why) : errorResult(why, "interrupted", "interrupted");
  settleCall(host, call, result, { posts: abortOfChild(host, call, signal), isUnreviewed: true, clearedTimers });
}

/** Whether the call was never started: a call of an answer that arrived after the stop has no machine. */
function isUnbegun(host: Host, { turnId, callId }: CallState): boolean {
  return host.call(turnId, callId) === undefined;
}

function interruptionText(signal: StopSignal | undefined): string {
  if (signal?.source === "supersede") return "Superseded by a new message of the user";
  if (signal?.reason === "user_requested") return "Interrupted by user";
  return `Interrupted: ${signal?.message ?? "the turn was stopped"}`;
}

function abortOfChild(host: Host, call: CallState, signal: StopSignal | undefined): Post[] {
  if (call.childId === null || call.childResult !== null) return [];
  return [abortPost(host, call.childId, signal)];
}

/** Ends a child with its parent's turn, whether or not a process currently owns the child. */
function abortPost(host: Host, childId: string, signal: StopSignal | undefined): Post {
  const stopReason = signal?.reason === "time_limit" ? "time_limit" : "user_requested";
  return {
    agentId: childId,
    item: {
      kind: "abort",
      key: `abort:${host.identity.agentId}`,
      at: host.clock.now(),
      turnId: null,
      by: host.identity.agentId,
      reason: signal?.message ?? "the parent's turn ended",
      stopReason,
    },
  };
}

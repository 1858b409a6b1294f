import type { TurnEffectInput } from "../machines/index.ts";
import {
  type CallState,
  declareCall,
  type EntryOf,
  lastStepOf,
  type OpenRequest,
  type StopSignal,
  type StoredError,
  strongestSignal,
  type TurnState,
  type Usage,
} from "../state/index.ts";
import type { Post } from "../stores/index.ts";
import { waitTimerId } from "./background-calls.ts";
import { effectActor } from "./effect.ts";
import type { Host, Withdrawal } from "./host.ts";
import { settlementOf, unconfirmedSettlement } from "./model-cost.ts";
import { requestKeyOf } from "./model-outcome.ts";
import { errorResult, settleCall, settleEnded, unknownResult } from "./settle-call.ts";
import { resultOfSpawn } from "./subagent-calls.ts";

/**
 * Gives everything open an outcome, so that the turn can end with a legal history: the model call in flight, calls of
 * `generate()`, and each tool call (row H10). Awaited children end with their turn.
 */
export const interruptOpenWork = effectActor<TurnEffectInput>(
  "interruptOpenWork",
  async (host, { turnId }, interrupted) => {
    // A result behind an undecided intent is not in the fold yet: its call must not be settled twice.
    while (host.undelivered().length > 0) await host.delivered();
    // Nothing may be awaited after the turn is read below.
    const isQueued = (host.turn(turnId)?.queuedCallIds.length ?? 0) > 0;
    const withdrawn = isQueued ? await withdrawQueued(host, turnId, interrupted) : undefined;
    const turn = host.turn(turnId);
    if (!turn || interrupted.aborted) return;
    const signal = strongestSignal(turn.execution.continuation.stopSignals);
    settleOpenGenerates(host, turn, interruption(signal));
    const { step } = turn;
    for (const callId of turn.unreviewedCallIds) host.append({ type: "call.reviewed", turnId, step, callId });
    for (const callId of turn.openCallIds) {
      // Calls of an answer that came after the stop were never begun, and have no machine.
      const call = host.call(turnId, callId) ?? declareCall(callId, nameOfCall(turn, callId));
      if (call.outcome === null) settleInterrupted(host, call, signal, withdrawn?.get(callId));
    }
    if (turn.openRequest) cutRequest(host, turn, turn.openRequest, signal);
  },
);

/** Settles open calls of `generate()` in full: their code is gone or did not wait, so nothing takes their answers. */
export function settleOpenGenerates(host: Host, turn: TurnState, error: StoredError): void {
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
    ? settlementOf(open.reservation, usage, requested?.price ?? null)
    : unconfirmedSettlement(open.reservation);
  const { step, attempt, model } = open;
  const error = interruption(signal);
  host.append(
    { type: "model.failed", turnId: turn.turnId, step, attempt, model, error, retryAt: null, usage, settlement },
    { moves: [{ type: "settle", settlement }] },
  );
}

/** Withdraws calls from their queues, all at once; only then is it known whether a worker has begun them. */
async function withdrawQueued(
  host: Host,
  turnId: string,
  interrupted: AbortSignal,
): Promise<ReadonlyMap<string, Withdrawal>> {
  const turn = host.turn(turnId);
  const calls = turn?.queuedCallIds.flatMap((callId) => host.call(turnId, callId) ?? []) ?? [];
  if (!turn || calls.length === 0 || interrupted.aborted) return new Map();
  const reason = wordsOf(strongestSignal(turn.execution.continuation.stopSignals));
  const withdrawn = calls.map(async (call) => {
    return [call.callId, await host.queue.withdraw(call, reason, interrupted)] as const;
  });
  const outcomes = new Map(await Promise.all(withdrawn));
  // Ends of calls may have been taken in meanwhile.
  while (host.undelivered().length > 0) await host.delivered();
  return outcomes;
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
  const why = isUnbegun(host, call) && signal?.limit ? `Not run: ${signal.message}` : wordsOf(signal);
  const isBegun = withdrawn && "isBegun" in withdrawn ? withdrawn.isBegun : call.startedEpoch !== null;
  const ranOnce = isBegun && call.gate?.effect === "once" && call.childId === null;
  // A child in the background has been started, and goes on.
  const spawned = resultOfSpawn(call);
  if (spawned) return settleCall(host, call, spawned, { isUnreviewed: true });
  const clearedTimers = call.wait ? [waitTimerId(call.callId)] : [];
  const result = ranOnce ? unknownResult(call.name, why) : errorResult(why, "interrupted", "interrupted");
  settleCall(host, call, result, { posts: abortOfChild(host, call, signal), isUnreviewed: true, clearedTimers });
}

/** A call of an answer that came after the stop has no machine. */
function isUnbegun(host: Host, { turnId, callId }: CallState): boolean {
  return host.call(turnId, callId) === undefined;
}

function wordsOf(signal: StopSignal | undefined): string {
  if (signal?.source === "supersede") return "Superseded by a new message of the user";
  if (signal?.reason === "user_requested") return "Interrupted by user";
  return `Interrupted: ${signal?.message ?? "the turn was stopped"}`;
}

function abortOfChild(host: Host, call: CallState, signal: StopSignal | undefined): Post[] {
  if (call.childId === null || call.childResult !== null) return [];
  return [abortPost(host, call.childId, signal)];
}

/** Ends a child with its parent's turn, whether or not a process has it now. */
export function abortPost(host: Host, childId: string, signal: StopSignal | undefined): Post {
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

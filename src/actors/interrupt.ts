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
 * Gives everything that is open an outcome, so that the turn can end with a legal history: the request in flight, metered
 * side calls, and each tool call (row H10). Children that are awaited are ended with their turn.
 */
export const interruptOpenWork = effectActor<TurnEffectInput>(
  "interruptOpenWork",
  async (host, { turnId }, interrupted) => {
    // A result behind an undecided intent is not in the fold yet: its call must not get another one.
    while (host.undelivered().length > 0) await host.delivered();
    // From the last look at the turn on nothing is awaited.
    const isQueued = (host.turn(turnId)?.queuedCallIds.length ?? 0) > 0;
    const withdrawn = isQueued ? await withdrawQueued(host, turnId, interrupted) : undefined;
    const turn = host.turn(turnId);
    if (!turn || interrupted.aborted) return;
    const signal = strongestSignal(turn.execution.continuation.stopSignals);
    settleOpenGenerates(host, turn, interruption(signal));
    const { step } = turn;
    for (const callId of turn.unreviewedCallIds) host.append({ type: "call.reviewed", turnId, step, callId });
    for (const callId of turn.openCallIds) {
      // Calls of an answer that came after the turn was told to stop were never begun, and have no machine.
      const call = host.call(turnId, callId) ?? declareCall(callId, nameOfCall(turn, callId));
      if (call.outcome === null) settleInterrupted(host, call, signal, withdrawn?.get(callId));
    }
    if (turn.openRequest) cutRequest(host, turn, turn.openRequest, signal);
  },
);

/** Side calls whose code is gone, or did not wait for them: settled in full, since nobody takes their answers any more. */
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

/** Takes calls back from their queues, all at once; only then is it known whether anybody had begun them. */
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
  // What had ended may have been taken in meanwhile.
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
  // One in the background is there, and goes on.
  const spawned = resultOfSpawn(call);
  if (spawned) return settleCall(host, call, spawned, { isUnreviewed: true });
  const clearedTimers = call.wait ? [waitTimerId(call.callId)] : [];
  const result = ranOnce ? unknownResult(call.name, why) : errorResult(why, "interrupted", "interrupted");
  settleCall(host, call, result, { posts: abortOfChild(host, call, signal), isUnreviewed: true, clearedTimers });
}

/** A call of an answer that came when the turn had been stopped already has no machine. */
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

/** Ends a child with the turn it belongs to, whether or not anybody owns it now. */
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

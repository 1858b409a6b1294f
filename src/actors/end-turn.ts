import { faultPoint } from "../base/index.ts";
import {
  costOfExecution,
  errorsOf,
  isFailure,
  type Lifecycle,
  type Message,
  naturalStopReason,
  type StopReason,
  type StopSignal,
  strongestSignal,
  type TurnOutcome,
  type TurnState,
  textOf,
  usageOf,
  wasForceStopped,
} from "../state/index.ts";
import { warnOfLength } from "./compact.ts";
import { effectActor } from "./effect.ts";
import { backgroundMoves, endPosts, wakingAfter } from "./end-posts.ts";
import { releaseHeld } from "./hook-run.ts";
import type { Host } from "./host.ts";
import { abortPost, settleOpenGenerates } from "./interrupt.ts";
import { metadataOf } from "./model-outcome.ts";

/** Appends `turn.ended`: how it ended, what it cost, and to whom the result goes. */
export const endTurn = effectActor<{ readonly turnId: string }>("endTurn", async (host, { turnId }, interrupted) => {
  // What is granted only now has to be settled too; and the record closes the turn with the entry that ends it.
  while (host.undelivered().length > 0) await host.delivered();
  const turn = host.turn(turnId);
  if (!turn || interrupted.aborted) return;
  releaseHeld(host, turnId);
  const left = { code: "turn_ended", message: "the turn ended without this call of generate()", retryable: false };
  settleOpenGenerates(host, turn, left);
  const { signal, outcome, stopReason, closing, text } = endOf(host, turn);
  const outputMessageId = closing?.id ?? turn.outputMessageId;
  // The turn that makes it too long tells it, not the next one.
  warnOfLength(host, turnId, closing ? [closing] : []);
  const [first, ...others] = wakingAfter(turn, { stopReason });
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
      ...(first ? { waking: [first, ...others] } : {}),
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
      wake: first && { childId: first.childId, actorId: first.actorId },
    },
  );
  faultPoint("turn.result");
});

/** How a turn ends, as its fold now stands. */
export function endOf(host: Host, turn: TurnState) {
  const signal = strongestSignal(turn.execution.continuation.stopSignals) ?? null;
  const { outcome, stopReason } = verdictOf(turn, signal);
  const closing = closingMessage(host, turn, outcome, signal);
  const text = textOf((closing ?? host.message(turn.outputMessageId ?? ""))?.content ?? "");
  return { signal, outcome, stopReason, closing, text };
}

/** A pause that came while the turn was ending holds for what comes next. */
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

/** A stopped turn without any text says so plainly (requirements, Steps limit). */
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
    metadata: metadataOf(host, turn.turnId, Math.max(1, turn.step), false),
  };
}

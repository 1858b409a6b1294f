import { faultPoint } from "../base/index.ts";
import { agentAccountId } from "../budget/index.ts";
import type { TurnEffectInput } from "../machines/index.ts";
import {
  costOfExecution,
  type EntryOf,
  errorsOf,
  isFailure,
  type Lifecycle,
  type Message,
  naturalStopReason,
  stepMetadata,
  type StopReason,
  type StopSignal,
  strongestSignal,
  textOf,
  type TurnOutcome,
  type TurnState,
  usageOf,
  type WakingReport,
  wasForceStopped,
} from "../state/index.ts";
import type { BudgetMove, Post } from "../stores/index.ts";
import { warnOfLength } from "./compact.ts";
import { effectActor } from "./effect.ts";
import { releaseHeld } from "./hook-run.ts";
import type { Host } from "./host.ts";
import { abortPost, settleOpenGenerates } from "./interrupt.ts";

/** Appends `turn.ended`: its outcome, its cost, and the posts that carry the result. */
export const endTurn = effectActor<TurnEffectInput>("endTurn", async (host, { turnId }, interrupted) => {
  // Intents that are granted only now have to be settled too; and nothing may follow the entry that ends the turn.
  while (host.undelivered().length > 0) await host.delivered();
  const turn = host.turn(turnId);
  if (!turn || interrupted.aborted) return;
  releaseHeld(host, turnId);
  const left = { code: "turn_ended", message: "the turn ended without this call of generate()", retryable: false };
  settleOpenGenerates(host, turn, left);
  const { signal, outcome, stopReason, closing, text } = endOf(host, turn);
  const outputMessageId = closing?.id ?? turn.outputMessageId;
  // The turn that makes the conversation too long warns of it, not the next one.
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

/** How the turn would end now, by its fold. */
export function endOf(host: Host, turn: TurnState) {
  const signal = strongestSignal(turn.execution.continuation.stopSignals) ?? null;
  const { outcome, stopReason } = verdictOf(turn, signal);
  const closing = closingMessage(host, turn, outcome, signal);
  const text = textOf((closing ?? host.message(turn.outputMessageId ?? ""))?.content ?? "");
  return { signal, outcome, stopReason, closing, text };
}

/** A pause that came while the turn was ending takes effect after it. */
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

/** The message of a stopped turn without any text (requirements, Steps limit). */
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

/** Posts the end of a child's first turn to its parent. Later turns do not concern the parent. */
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

/** Child accounts that outlive the turn's own: of children in the background, and of children that left such behind. */
function backgroundMoves(turn: TurnState): BudgetMove[] {
  const { accountId, backgroundIds, leavingIds, waking } = turn;
  const childIds = new Set([...backgroundIds, ...leavingIds, ...waking.map(({ childId }) => childId)]);
  if (childIds.size === 0) return [];
  return [{ type: "background", accountId, childAccountIds: [...childIds].map(agentAccountId) }];
}

/** Reports that no model call of the turn has seen and that call for another turn; none after an end by hand. */
function wakingAfter(turn: TurnState, { stopReason }: Pick<TurnEnd, "stopReason">): readonly WakingReport[] {
  return stopReason === "user_requested" ? [] : turn.waking;
}

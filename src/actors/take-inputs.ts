import { createDraft, type HookDrafts } from "../hooks/index.ts";
import { hookKeyOf, textOf, type TurnState, unseenInputsOf } from "../state/index.ts";
import { guardsResults } from "./guards.ts";
import { type HookSet, releaseHeld, runHooks } from "./hook-run.ts";
import type { Host } from "./host.ts";
import { nextStep } from "./prompt.ts";

/*
 * Inputs that arrive during a turn.
 *
 * Invariant: each attempt of a model call shows exactly the inputs that were journalled before its intent, except those that were too late
 * for the `beforeLlm` hooks of its step. So the call of the step in `turn.steered` shows the input.
 */

/** Whether the `beforeLlm` hooks of the next step have begun, so that an input which arrives now has to wait for the step after it. */
export function isTooLate(host: Pick<Host, "notes" | "inFlight">, turn: TurnState): boolean {
  const stepKey = `${turn.turnId}:${nextStep(turn)}`;
  return (
    turn.appliedHooks.some((key) => key.startsWith("beforeLlm:")) ||
    host.notes.haveHooksBegun(stepKey) ||
    // Begun by an earlier activation of the agent in this process.
    host.inFlight.has(`${stepKey}:${hookKeyOf("beforeLlm", 0)}`)
  );
}

/** Whether an input has arrived since the last `takeInInputs` that the next model call must show. */
export function isInputDue(host: Host, turnId: string): boolean {
  if (host.undelivered().some(({ type }) => type === "turn.steered")) return true;
  const turn = host.turn(turnId);
  if (!turn || isTooLate(host, turn)) return false;
  return unseenInputsOf(turn).some(({ messageId }) => turn.heldMessageIds.includes(messageId));
}

/**
 * Adds held messages to history before a model call, and runs the `afterUserInput` hooks for each input among them. Once `beforeLlm` hooks
 * of the step have run, an input waits for the next step, because those hooks have to see it before the model does. Returns false if the
 * turn was stopped.
 */
export async function takeInInputs(host: Host, turnId: string, signal: AbortSignal): Promise<boolean> {
  for (;;) {
    const turn = host.turn(turnId);
    if (!turn || signal.aborted) return false;
    const unseen = unseenInputsOf(turn).map(({ messageId }) => messageId);
    const isLate = isTooLate(host, turn);
    // Guards have to see reports of subagents too.
    const late = guardsResults(host) ? turn.heldMessageIds : unseen;
    releaseHeld(host, turnId, isLate ? late : []);
    const due = unseen.find((id) => !host.turn(turnId)?.heldMessageIds.includes(id) && isUnwelcomed(turn, id));
    if (due === undefined) return true;
    const place = { turnId, step: nextStep(turn), hook: "afterUserInput", inputId: due } as const;
    if (!(await runHooks(host, place, inputHooks(host, turnId, due), signal))) return false;
    await host.delivered();
  }
}

/** Whether an `afterUserInput` hook has not looked at the input yet. */
function isUnwelcomed({ hooks, appliedHooks }: TurnState, inputId: string): boolean {
  const indices = Array.from({ length: hooks.afterUserInput }, (_, index) => index);
  return indices.some((index) => !appliedHooks.includes(hookKeyOf("afterUserInput", index, inputId)));
}

/** The `afterUserInput` hooks for the turn's input, or for an input that arrived during the turn. */
export function inputHooks(host: Host, turnId: string, inputId?: string): HookSet<HookDrafts["afterUserInput"]> {
  const input = (): string =>
    inputId === undefined ? host.memory(turnId).prompt : textOf(host.message(inputId)?.content ?? "");
  return {
    registered: host.definition.hooks.afterUserInput,
    draft: () => createDraft("afterUserInput", { messages: host.history(), input: input() }),
  };
}

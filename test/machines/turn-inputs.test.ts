import { expect, test } from "vitest";
import { stepOfInput } from "../../src/machines/index.ts";
import { type EntryBody, type FactBody, nextMove, noHooks, unseenInputsOf } from "../../src/state/index.ts";
import {
  hookApplied,
  modelFailed,
  modelRequested,
  modelResponded,
  refused,
  resumed,
  stopSignalled,
  toolSettled,
  toolStarted,
  turnId,
  turnStarted,
} from "./bodies.ts";
import { hooksSettled } from "./hook-bodies.ts";
import { requestOpened } from "./request-bodies.ts";
import { turnAfter } from "./turn-after.ts";

/* Inputs that arrive during a turn, as pure transitions. */

const thinking = { thinking: "assembling" };

function steered(step: number, count = 1): FactBody {
  const ids = { steerId: `s${count}`, messageId: `${turnId}:in:${count}` };
  return { type: "turn.steered", turnId, step, ...ids, content: "more", actorId: null };
}

function released(...messageIds: string[]): FactBody {
  return { type: "messages.released", turnId, messageIds };
}

const first = `${turnId}:in:1`;

function stepNow(bodies: readonly EntryBody[], isAsked = false): number | null {
  const { value, context } = turnAfter(...bodies);
  return stepOfInput(context, value, isAsked);
}

test("an input during the last call makes the turn think again instead of ending", () => {
  const asked = [modelRequested()];
  expect(turnAfter(...asked, modelResponded()).value).toBe("finishing");
  const { value, context } = turnAfter(...asked, steered(2), modelResponded());
  expect(value).toEqual(thinking);
  expect(context.heldMessageIds).toEqual([first]);
  const done = turnAfter(...asked, steered(2), modelResponded(), released(first), modelRequested(2), modelResponded(2));
  expect(done.value).toBe("finishing");
  expect(unseenInputsOf(done.context)).toEqual([]);
});

test("an input during a round waits until every call has its result", () => {
  const round = [modelRequested(), modelResponded(1, 2), toolStarted(0), toolStarted(1), steered(2)];
  expect(turnAfter(...round).value).toBe("round");
  expect(turnAfter(...round, toolSettled(0)).value).toBe("round");
  const after = turnAfter(...round, toolSettled(0), toolSettled(1));
  expect(after.value).toEqual(thinking);
  expect(unseenInputsOf(after.context)).toEqual([{ childId: null, messageId: first, actorId: null }]);
});

test("an input that is still held when a call starts is not seen by it", () => {
  const { context } = turnAfter(steered(1), modelRequested());
  expect(unseenInputsOf(context)).toHaveLength(1);
  expect(nextMove(turnAfter(steered(1), modelRequested(), modelResponded()).context)).toBe("think");
});

test("a checked answer is followed by the call that sees the input", () => {
  const hooked = turnStarted({ hooks: { ...noHooks, afterLlm: 1, onComplete: 1 } });
  const deciding = [hooked, modelRequested(), modelResponded(), steered(2)];
  expect(turnAfter(...deciding).value).toBe("deciding");
  expect(turnAfter(...deciding, hooksSettled("answer")).value).toEqual(thinking);
});

test("a stop takes precedence over an input", () => {
  const stopped = turnAfter(modelRequested(), modelResponded(1, 1), steered(2), stopSignalled("user_requested"));
  expect(stopped.value).toBe("stopping");
  expect(unseenInputsOf(stopped.context)).toHaveLength(1);
});

test("an input while the call waits, is held or is retried is seen by that call", () => {
  for (const reason of ["mustWait", "paused"] as const) {
    const waiting = [refused(reason), steered(1)];
    expect(turnAfter(...waiting).value, reason).toBe(reason === "paused" ? "held" : "waiting");
    expect(turnAfter(...waiting, resumed).value, reason).toEqual(thinking);
  }
  const retried = [modelRequested(), modelFailed(1), steered(1)];
  expect(turnAfter(...retried).value).toEqual({ thinking: "retrying" });
  const stop = hookApplied("afterUserInput", 0, { stop: { reason: "stop_requested", message: "no" } });
  expect(turnAfter(...retried, stop).value).toBe("finishing");
});

test("hooks look at each input once: an input has keys of its own", () => {
  const hook = hookApplied("afterUserInput");
  const { context } = turnAfter(hook, steered(1), { ...hook, inputId: first } as EntryBody);
  expect(context.appliedHooks).toEqual(["afterUserInput:0", `afterUserInput:0:${first}`]);
});

test("the step that sees an input, in each state of the turn", () => {
  expect(stepNow([])).toBe(1);
  expect(stepNow([], true)).toBe(2);
  expect(stepNow([modelRequested()])).toBe(2);
  expect(stepNow([modelRequested(), modelFailed(1)])).toBe(1);
  expect(stepNow([modelRequested(), modelResponded(1, 1)])).toBe(2);
  expect(stepNow([modelRequested(), modelResponded(1, 1), requestOpened()])).toBe(2);
  expect(stepNow([refused("paused")])).toBe(1);
});

test("once beforeLlm hooks of a step have run, the next step sees an input", () => {
  const hooked = turnStarted({ hooks: { ...noHooks, beforeLlm: 1 } });
  expect(stepNow([hooked])).toBe(1);
  expect(stepNow([hooked, hookApplied("beforeLlm")])).toBe(2);
  expect(stepNow([hooked, hookApplied("beforeLlm"), modelRequested(), modelFailed(1)])).toBe(2);
});

test("no step sees an input of a turn that is ending or may not ask the model again", () => {
  expect(stepNow([modelRequested(), modelResponded()])).toBeNull();
  const hooked = turnStarted({ hooks: { ...noHooks, onComplete: 1 } });
  expect(stepNow([hooked, modelRequested(), modelResponded()])).toBeNull();
  expect(stepNow([modelRequested(), stopSignalled("user_requested")])).toBeNull();
  const limited = turnStarted({ limits: { maxSteps: 1 } });
  expect(stepNow([limited])).toBe(1);
  expect(stepNow([limited, modelRequested()])).toBeNull();
});

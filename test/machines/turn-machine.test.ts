import { describe, expect, test } from "vitest";
import { noHooks } from "../../src/state/index.ts";
import {
  budgetFreed,
  callGated,
  callIdAt,
  childEnded,
  childSpawned,
  failure,
  hookApplied,
  modelFailed,
  modelRequested,
  modelResponded,
  refused,
  resumed,
  stopSignalled,
  toolSettled,
  toolStarted,
  turnEnded,
  turnId,
  turnStarted,
} from "./bodies.ts";
import { turnAfter } from "./turn-after.ts";

const withHooks = turnStarted({ hooks: { ...noHooks, beforeLlm: 0, afterTools: 2 } });
const inCall = modelRequested();
const inRound = [inCall, modelResponded(1, 2)];

describe("one step after another", () => {
  test("an accepted turn thinks", () => {
    expect(turnAfter().value).toEqual({ thinking: "assembling" });
  });

  test("a granted call runs until its answer, and a final answer finishes the turn", () => {
    expect(turnAfter(inCall).value).toEqual({ thinking: "calling" });
    expect(turnAfter(inCall, modelResponded()).value).toBe("finishing");
  });

  test("an answer with tool calls opens a round with one machine per call", () => {
    const snapshot = turnAfter(...inRound);
    expect(snapshot.value).toBe("round");
    expect(Object.keys(snapshot.children)).toEqual([callIdAt(0), callIdAt(1)]);
  });

  test("the round ends with its last result, in any order", () => {
    expect(turnAfter(...inRound, toolSettled(1)).value).toBe("round");
    expect(turnAfter(...inRound, toolSettled(1), toolSettled(0)).value).toEqual({ thinking: "assembling" });
  });

  test("the calls of a round are dropped when the next step starts", () => {
    const next = turnAfter(...inRound, toolSettled(0), toolSettled(1), modelRequested(2));
    expect(Object.keys(next.children).filter((id) => id.startsWith(turnId))).toEqual([]);
  });

  test("a duplicate result does not end the round", () => {
    expect(turnAfter(...inRound, toolSettled(0), toolSettled(0)).value).toBe("round");
  });

  test("hooks of the round run before the next step", () => {
    const settled = [withHooks, ...inRound, toolSettled(0), toolSettled(1)] as const;
    expect(turnAfter(...settled).value).toBe("settling");
    expect(turnAfter(...settled, hookApplied("afterTools", 0)).value).toBe("settling");
    expect(turnAfter(...settled, hookApplied("afterTools", 0), hookApplied("afterTools", 1)).value).toEqual({
      thinking: "assembling",
    });
  });

  test.each(["completed", "stopped", "failed"] as const)("turn.ended as %s is a final state of its own", (outcome) => {
    const end = outcome === "completed" ? "done" : outcome;
    expect(turnAfter(inCall, modelResponded(), turnEnded(outcome)).value).toBe(end);
  });
});

describe("failures", () => {
  test("a failed call is retried in its step", () => {
    expect(turnAfter(inCall, modelFailed(5_000)).value).toEqual({ thinking: "retrying" });
    const again = turnAfter(inCall, modelFailed(5_000), modelRequested(1, 2));
    expect(again.value).toEqual({ thinking: "calling" });
    expect(again.context.execution.stepExecutions).toEqual([]);
    expect(again.context).toMatchObject({ step: 1, attempt: 2 });
  });

  test("a call that failed without a retry ends the turn", () => {
    expect(turnAfter(inCall, modelFailed(null)).value).toBe("finishing");
  });

  test("the allowed number of rounds in which every call failed ends the turn", () => {
    const once = [...inRound, toolSettled(0, 1, "error"), toolSettled(1, 1, "denied")];
    expect(turnAfter(...once).value).toEqual({ thinking: "assembling" });
    const twice = [...once, modelRequested(2), modelResponded(2, 1), toolSettled(0, 2, "error")];
    expect(turnAfter(...twice).value).toBe("finishing");
  });

  test("a success resets the count", () => {
    const outcomes = ["error", "success", "error"] as const;
    const bodies = outcomes.flatMap((outcome, index) => [
      modelRequested(index + 1),
      modelResponded(index + 1, 1),
      toolSettled(0, index + 1, outcome),
    ]);
    expect(turnAfter(...bodies).value).toEqual({ thinking: "assembling" });
  });

  test("an effect that threw ends the turn, once open work has an outcome", () => {
    const thrown = { type: "effect.failed", turnId, effect: "think", error: failure } as const;
    expect(turnAfter(thrown).value).toBe("finishing");
    expect(turnAfter(...inRound, thrown).value).toBe("stopping");
  });
});

describe("stop signals (rows S5, S11, S12)", () => {
  test("a person's abort cuts a call in flight, gives it an outcome, then finishes", () => {
    expect(turnAfter(inCall, stopSignalled()).value).toBe("stopping");
    expect(turnAfter(inCall, stopSignalled(), modelFailed(null)).value).toBe("finishing");
  });

  test("an abort without running work finishes at once, with no step", () => {
    const snapshot = turnAfter(stopSignalled());
    expect(snapshot.value).toBe("finishing");
    expect(snapshot.context.step).toBe(0);
  });

  test("an abort of a round waits for a result of every call", () => {
    expect(turnAfter(...inRound, stopSignalled()).value).toBe("stopping");
    expect(turnAfter(...inRound, stopSignalled(), toolSettled(0, 1, "interrupted")).value).toBe("stopping");
    const all = [stopSignalled(), toolSettled(0, 1, "interrupted"), toolSettled(1, 1, "interrupted")];
    expect(turnAfter(...inRound, ...all).value).toBe("finishing");
  });

  test("a stop request does not cut: the step ends first", () => {
    expect(turnAfter(inCall, stopSignalled("stop_requested")).value).toEqual({ thinking: "calling" });
    const settled = [toolSettled(0), toolSettled(1)];
    expect(turnAfter(...inRound, stopSignalled("stop_requested")).value).toBe("round");
    expect(turnAfter(...inRound, stopSignalled("stop_requested"), ...settled).value).toBe("finishing");
  });

  test("a hook's stop request takes effect at once without running work: before the call, and between rounds", () => {
    expect(turnAfter(stopSignalled("stop_requested")).value).toBe("finishing");
    const settled = [withHooks, ...inRound, toolSettled(0), toolSettled(1)] as const;
    expect(turnAfter(...settled, stopSignalled("stop_requested")).value).toBe("finishing");
  });

  test("a waiting turn with a stop request ends instead of continuing", () => {
    expect(turnAfter(refused("mustWait"), stopSignalled("stop_requested"), budgetFreed).value).toBe("finishing");
    expect(turnAfter(refused("paused"), stopSignalled("stop_requested"), resumed).value).toBe("finishing");
  });

  test("a requested continuation overrules a stop request", () => {
    const goOn = hookApplied("afterLlm", 0, { continueRequested: true });
    const bodies = [...inRound, stopSignalled("stop_requested"), goOn, toolSettled(0), toolSettled(1)];
    expect(turnAfter(...bodies).value).toEqual({ thinking: "assembling" });
    expect(turnAfter(inCall, goOn, modelResponded()).value).toEqual({ thinking: "assembling" });
  });

  test("a time limit cuts like an abort", () => {
    const { signal } = stopSignalled("time_limit");
    const due = { type: "timer.due", turnId, timerId: "deadline", signal } as const;
    expect(turnAfter(inCall, due).value).toBe("stopping");
    expect(turnAfter(due).value).toBe("finishing");
  });

  test("tool calls of an answer after a stop request are not started", () => {
    const snapshot = turnAfter(inCall, stopSignalled("stop_requested"), modelResponded(1, 2));
    expect(snapshot.value).toBe("stopping");
    expect(Object.keys(snapshot.children).filter((id) => id.startsWith(turnId))).toEqual([]);
  });
});

describe("refused intents", () => {
  test("a reached limit ends the turn, with the limit as its signal", () => {
    const snapshot = turnAfter(refused("budget"));
    expect(snapshot.value).toBe("finishing");
    expect(snapshot.context.execution.continuation.stopSignals).toMatchObject([{ reason: "token_limit" }]);
  });

  test("the turn waits for others' reservations", () => {
    expect(turnAfter(refused("mustWait")).value).toBe("waiting");
    expect(turnAfter(refused("mustWait"), budgetFreed).value).toEqual({ thinking: "assembling" });
  });

  test("a pause holds the turn until the resume", () => {
    expect(turnAfter(refused("paused")).value).toBe("held");
    expect(turnAfter(refused("paused"), resumed).value).toEqual({ thinking: "assembling" });
  });

  test("an ancestor's abort ends it", () => {
    expect(turnAfter(refused("aborted", "model.requested", { agentId: "lead" })).value).toBe("finishing");
  });

  test("a refused side call or tool does not change the turn's state", () => {
    expect(turnAfter(refused("paused", "generate.requested")).value).toEqual({ thinking: "assembling" });
    const ofTool = refused("mustWait", "tool.started", { callId: callIdAt(0) });
    expect(turnAfter(...inRound, ofTool).value).toBe("round");
  });

  test("a turn that waits or is held can be aborted", () => {
    expect(turnAfter(refused("mustWait"), stopSignalled()).value).toBe("finishing");
    expect(turnAfter(refused("paused"), stopSignalled()).value).toBe("finishing");
  });
});

describe("counters", () => {
  test("tools and subagents are tool calls; a retry is not another one", () => {
    const { context } = turnAfter(
      ...inRound,
      callGated(0),
      toolStarted(0),
      toolStarted(0, 1, 2),
      childSpawned(1),
      childEnded(1),
    );
    expect(context).toMatchObject({ toolCalls: 2, openChildIds: [] });
  });
});

import { describe, expect, test } from "vitest";
import { foldTurn, isAnswerChecked, noHooks, type TurnState } from "../../src/state/index.ts";
import {
  at,
  callIdAt,
  hookApplied,
  modelFailed,
  modelRequested,
  modelResponded,
  stopSignalled,
  toolSettled,
} from "../machines/bodies.ts";
import {
  callHookApplied,
  callReviewed,
  contextCompacted,
  contextExpanded,
  contextLoaded,
  hooksSettled,
  messagesReleased,
  outputChecked,
} from "../machines/hook-bodies.ts";
import { turnWaiting } from "../machines/request-bodies.ts";
import { foldOf, type Started } from "./fold-of.ts";

const inCall = modelRequested();
const inRound = [inCall, modelResponded(1, 2)];
const reviewDue = { reviewDue: true } as const;

function signalsOf({ execution }: TurnState) {
  return execution.continuation.stopSignals;
}

describe("the start of a turn", () => {
  test("has its own hooks, schema and window, or none", () => {
    const hooks = { ...noHooks, onComplete: 2 };
    expect(foldOf({ hooks, checksOutput: true, contextWindowSize: 12 })).toMatchObject({
      hooks,
      checksOutput: true,
      contextWindowSize: 12,
    });
    expect(foldOf({})).toMatchObject({ checksOutput: false, contextWindowSize: null, outputFits: null });
  });
});

describe("hooks", () => {
  test("are counted until the next answer, except those of one call", () => {
    const applied = [hookApplied("beforeLlm", 0), hookApplied("beforeLlm", 1)];
    expect(foldOf({}, ...applied).appliedHooks).toEqual(["beforeLlm:0", "beforeLlm:1"]);
    expect(foldOf({}, ...applied, inCall, modelResponded(1, 1)).appliedHooks).toEqual([]);
    expect(foldOf({}, ...inRound, callHookApplied("afterEachTool")).appliedHooks).toEqual([]);
  });

  test("do not run again in a retry of the call", () => {
    const retried = [hookApplied("beforeLlm"), inCall, modelFailed(5_000), modelRequested(1, 2)];
    expect(foldOf({}, ...retried).appliedHooks).toEqual(["beforeLlm:0"]);
  });

  test("a stop is a signal that names its plugin, even from a hook of one call", () => {
    const stop = { reason: "stop_requested", message: "enough" } as const;
    for (const body of [hookApplied("afterTools", 0, { stop }), callHookApplied("onError", 0, stop)]) {
      expect(signalsOf(foldOf({}, ...inRound, body))).toEqual([{ ...stop, source: "hook:agent" }]);
    }
  });

  test("a continuation applies to the one step that it requested", () => {
    const goesOn = [inCall, modelResponded(), hookApplied("afterLlm", 0, { continueRequested: true })];
    expect(foldOf({}, ...goesOn).execution.continuation.isContinuationRequested).toBe(true);
    expect(foldOf({}, ...goesOn, modelRequested(2)).execution.continuation.isContinuationRequested).toBe(false);
  });

  test("held messages keep their order and are removed when they are released", () => {
    const [a, b, c] = ["a", "b", "c"].map((messageId) => ({ messageId, role: "user", content: "x" }) as const);
    const holding = [
      hookApplied("afterLlm", 0, { held: a && b ? [a, b] : [] }),
      hookApplied("beforeTools", 0, { held: c ? [c] : [] }),
    ];
    expect(foldOf({}, ...inRound, ...holding).heldMessageIds).toEqual(["a", "b", "c"]);
    expect(foldOf({}, ...inRound, ...holding, messagesReleased("a", "c")).heldMessageIds).toEqual(["b"]);
  });
});

describe("the close of a round", () => {
  const failed = [...inRound, { ...toolSettled(0, 1, "error"), ...reviewDue }, toolSettled(1, 1, "invalid")];

  test("comes with the last result or the last review", () => {
    expect(foldOf({}, ...inRound, toolSettled(0), toolSettled(1)).roundCalls).toBe(0);
    const looking = foldOf({}, ...failed);
    expect(looking).toMatchObject({ openCallIds: [], unreviewedCallIds: [callIdAt(0)], roundCalls: 2 });
    expect(looking.consecutiveToolFailures).toBe(0);
    expect(foldOf({}, ...failed, callReviewed(0))).toMatchObject({ roundCalls: 0, consecutiveToolFailures: 1 });
  });

  test("counts once, even if a review is repeated", () => {
    const twice = [...failed, callReviewed(0), callReviewed(0), callReviewed(1)];
    expect(foldOf({}, ...twice).consecutiveToolFailures).toBe(1);
  });

  test("fails the turn only once hooks have reviewed the last failure", () => {
    const limits = { maxConsecutiveToolFailures: 1 };
    expect(signalsOf(foldOf(limits, ...failed))).toEqual([]);
    expect(signalsOf(foldOf(limits, ...failed, callReviewed(0)))).toMatchObject([{ reason: "error", source: "tools" }]);
  });

  test("a rejection counts as a failure, and a success resets the count", () => {
    const rejected = [inCall, modelResponded(1, 1), toolSettled(0, 1, "denied")];
    expect(foldOf({}, ...rejected).consecutiveToolFailures).toBe(1);
    const later = [modelRequested(2), modelResponded(2, 1), { ...toolSettled(0, 2), ...reviewDue }, callReviewed(0, 2)];
    expect(foldOf({}, ...rejected, ...later).consecutiveToolFailures).toBe(0);
  });
});

function checks(parts: Started, calls: number): boolean {
  return isAnswerChecked(foldOf(parts, inCall, modelResponded(1, calls)));
}

function hooked(hook: "afterLlm" | "beforeTools" | "afterTools"): Started {
  return { hooks: { ...noHooks, [hook]: 1 } };
}

describe("an answer is checked before the turn continues", () => {
  test("by hooks of every answer, by beforeTools if it has tool calls, by the schema if it has none", () => {
    expect([checks(hooked("afterLlm"), 0), checks(hooked("afterLlm"), 2)]).toEqual([true, true]);
    expect([checks(hooked("beforeTools"), 0), checks(hooked("beforeTools"), 2)]).toEqual([false, true]);
    expect([checks({ checksOutput: true }, 0), checks({ checksOutput: true }, 2)]).toEqual([true, false]);
    expect([checks(hooked("afterTools"), 0), checks(hooked("afterTools"), 2)]).toEqual([false, false]);
  });
});

describe("checked output", () => {
  const final = [inCall, modelResponded()];

  test("counts the repairs, and is reset by the next answer", () => {
    const repaired = [...final, outputChecked("repair"), hooksSettled("answer")];
    expect(foldOf({}, ...repaired)).toMatchObject({ outputFits: false, outputRepairs: 1 });
    const next = [modelRequested(2), modelResponded(2)];
    expect(foldOf({}, ...repaired, ...next)).toMatchObject({ outputFits: null, outputRepairs: 1 });
    expect(foldOf({}, ...repaired, ...next, outputChecked("fits", 2))).toMatchObject({ outputFits: true });
  });

  test("that finally does not fit is an error of its step with a message", () => {
    const { execution } = foldOf({}, ...final, outputChecked("misfit"));
    const message = "the answer does not fit the output schema: ok is missing";
    expect(execution.currentStep?.errors).toMatchObject([{ code: "output_invalid", message, retryable: false }]);
    expect(execution.continuation.stopSignals).toMatchObject([{ reason: "error", message, source: "output" }]);
    expect(foldOf({}, ...final, outputChecked("repair")).execution.currentStep?.errors).toEqual([]);
  });
});

describe("the model's context", () => {
  test("the window has its last size, and loaded calls are stored once", () => {
    const changed = [contextExpanded(20), contextLoaded(["a", "b"]), contextExpanded(30), contextLoaded(["b", "c"])];
    expect(foldOf({ contextWindowSize: 10 }, ...inRound, ...changed)).toMatchObject({
      contextWindowSize: 30,
      loadedCallIds: ["a", "b", "c"],
    });
  });

  test("compactions are counted until the answer, and end the wait for the next attempt", () => {
    const retried = [inCall, modelFailed(5_000), contextCompacted()];
    expect(foldOf({}, ...retried)).toMatchObject({ compactions: 1, retryAt: null, attempt: 1 });
    expect(foldOf({}, ...retried, modelRequested(1, 2), modelResponded()).compactions).toBe(0);
  });

  test("internal tools do not count as tool calls", () => {
    const calls = [{ callId: callIdAt(0), name: "load_history", internal: true as const }];
    expect(foldOf({}, inCall, modelResponded(1, 0, { calls }), toolSettled(0)).toolCalls).toBe(0);
  });
});

test("an entry that does not concern the turn returns the same object", () => {
  const turn = foldOf({}, ...inRound);
  for (const body of [hooksSettled("answer"), turnWaiting("r"), stopSignalled("stop_requested")]) {
    const next = foldTurn(turn, at(body, 9));
    expect(next === turn, body.type).toBe(body.type !== "stop.signalled");
  }
});

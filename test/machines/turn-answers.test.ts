import { describe, expect, test } from "vitest";
import { noHooks } from "../../src/state/index.ts";
import {
  budgetFreed,
  callIdAt,
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
  turnId,
  turnStarted,
} from "./bodies.ts";
import { contextCompacted, contextExpanded, contextLoaded, hooksSettled, outputChecked } from "./hook-bodies.ts";
import { requestDecided, requestOpened } from "./request-bodies.ts";
import { turnAfter } from "./turn-after.ts";

const thinking = { thinking: "assembling" };
const thrown = { type: "effect.failed", turnId, effect: "decide", error: failure } as const;
const abort = stopSignalled("user_requested");
const interrupted = (index: number) => toolSettled(index, 1, "interrupted");

describe("an answer that must fit a schema", () => {
  const begun = turnStarted({ checksOutput: true });
  const final = [modelRequested(), modelResponded()];
  const settled = hooksSettled("answer");
  const second = [modelRequested(2), modelResponded(2)];

  test("is checked before the turn ends, unless it calls tools", () => {
    expect(turnAfter(begun, ...final).value).toBe("deciding");
    expect(turnAfter(begun, modelRequested(), modelResponded(1, 1)).value).toBe("round");
    expect(turnAfter(turnStarted(), ...final).value).toBe("finishing");
  });

  test("ends the turn if it fits", () => {
    expect(turnAfter(begun, ...final, outputChecked("fits")).value).toBe("deciding");
    expect(turnAfter(begun, ...final, outputChecked("fits"), settled).value).toBe("finishing");
  });

  test("is requested again if it does not fit, and checked again", () => {
    const repaired = [...final, outputChecked("repair"), settled];
    expect(turnAfter(begun, ...repaired).value).toEqual(thinking);
    expect(turnAfter(begun, ...repaired, ...second).value).toBe("deciding");
    const fits = turnAfter(begun, ...repaired, ...second, outputChecked("fits", 2), hooksSettled("answer", 2));
    expect(fits.value).toBe("finishing");
    expect(fits.context.execution.continuation.stopSignals).toEqual([]);
  });

  test("fails the turn if it does not fit at the last attempt, without hooks of the end", () => {
    const hooked = { ...begun, hooks: { ...noHooks, onComplete: 1 } };
    const misfits = [...final, outputChecked("repair"), settled, ...second, outputChecked("misfit", 2)];
    const snapshot = turnAfter(hooked, ...misfits, hooksSettled("answer", 2));
    expect(snapshot.value).toBe("finishing");
    expect(snapshot.context.execution.continuation.stopSignals).toMatchObject([{ reason: "error", source: "output" }]);
    expect(turnAfter(hooked, ...final, outputChecked("fits"), settled).value).toBe("completing");
  });

  test("may call tools when it is requested again", () => {
    const repaired = [...final, outputChecked("repair"), settled];
    expect(turnAfter(begun, ...repaired, modelRequested(2), modelResponded(2, 1)).value).toBe("round");
  });

  test("is requested again even if the model call waits, is held, or is retried", () => {
    const repaired = [...final, outputChecked("repair"), settled];
    const ofStep = { step: 2 };
    const waits = [...repaired, refused("mustWait", "model.requested", ofStep)];
    expect(turnAfter(begun, ...waits).value).toBe("waiting");
    expect(turnAfter(begun, ...waits, budgetFreed).value).toEqual(thinking);
    const held = [...repaired, refused("paused", "model.requested", ofStep)];
    expect(turnAfter(begun, ...held, resumed).value).toEqual(thinking);
    const retried = [...repaired, modelRequested(2), modelFailed(5_000, ofStep)];
    expect(turnAfter(begun, ...retried).value).toEqual({ thinking: "retrying" });
  });

  test("a check that throws or an abort ends the turn", () => {
    for (const end of [thrown, abort]) expect(turnAfter(begun, ...final, end).value).toBe("finishing");
  });
});

function internalCall(index: number) {
  return { callId: callIdAt(index), name: "load_history", internal: true } as const;
}

describe("rounds of internal tools (row R6)", () => {
  const internal = [modelRequested(), modelResponded(1, 0, { calls: [internalCall(0), internalCall(1)] })];
  const mixed = modelResponded(1, 0, { calls: [internalCall(0), { callId: callIdAt(1), name: "look" }] });

  test("are ordinary rounds: a machine for each call, and the model is called again", () => {
    const round = turnAfter(...internal);
    expect(round.value).toBe("round");
    expect(Object.keys(round.children)).toEqual([callIdAt(0), callIdAt(1)]);
    expect(turnAfter(...internal, toolSettled(0)).value).toBe("round");
    expect(turnAfter(...internal, toolSettled(0), toolSettled(1)).value).toEqual(thinking);
  });

  test("their changes of the context belong to the round", () => {
    const changed = [contextExpanded(20, 0), toolSettled(0), contextLoaded(["old:1:0"], 1)];
    const { value, context } = turnAfter(...internal, ...changed);
    expect(value).toBe("round");
    expect(context).toMatchObject({ contextWindowSize: 20, loadedCallIds: ["old:1:0"], openCallIds: [callIdAt(1)] });
  });

  test("together with other calls: the round ends with the last call of either kind", () => {
    expect(turnAfter(modelRequested(), mixed, toolSettled(0)).value).toBe("round");
    expect(turnAfter(modelRequested(), mixed, toolStarted(1), toolSettled(1)).value).toBe("round");
    expect(turnAfter(modelRequested(), mixed, toolSettled(1), toolSettled(0)).value).toEqual(thinking);
  });

  test("an abort gives them results too", () => {
    expect(turnAfter(...internal, abort, interrupted(0)).value).toBe("stopping");
    expect(turnAfter(...internal, abort, interrupted(0), interrupted(1)).value).toBe("finishing");
  });

  test("hooks of the round receive them", () => {
    const hooks = turnStarted({ hooks: { ...noHooks, afterTools: 1 } });
    const settled = [...internal, toolSettled(0), toolSettled(1)];
    expect(turnAfter(hooks, ...settled).value).toBe("settling");
    expect(turnAfter(hooks, ...settled, hookApplied("afterTools")).value).toEqual(thinking);
  });
});

describe("calls that wait for people", () => {
  const inRound = [modelRequested(), modelResponded(1, 2)];

  test("keep the turn in its round, after an approval and after a rejection", () => {
    const opened = [...inRound, requestOpened("approval", 0), requestOpened("approval", 1)];
    expect(turnAfter(...opened).value).toBe("round");
    const decided = [...opened, requestDecided("rejected", "approval", 1), requestDecided("approved")];
    expect(turnAfter(...decided).value).toBe("round");
    expect(turnAfter(...decided, toolSettled(1, 1, "denied"), toolSettled(0)).value).toEqual(thinking);
  });

  test.each([
    { how: "an abort", end: abort },
    { how: "a failure", end: thrown },
  ])("$how closes them with a result", ({ end }) => {
    const closing = [...inRound, requestOpened(), toolSettled(1), end];
    expect(turnAfter(...closing).value).toBe("stopping");
    const snapshot = turnAfter(...closing, interrupted(0));
    expect(snapshot.value).toBe("finishing");
    expect(snapshot.context).toMatchObject({ openRequestIds: [], waitingCallIds: [], openCallIds: [] });
  });
});

describe("compaction", () => {
  test("can come before a call and between its attempts, and changes nothing else", () => {
    expect(turnAfter(contextCompacted()).value).toEqual(thinking);
    const retries = [modelRequested(), modelFailed(5_000), contextCompacted()];
    expect(turnAfter(...retries).value).toEqual({ thinking: "retrying" });
    expect(turnAfter(...retries).context).toMatchObject({ compactions: 1, retryAt: null, attempt: 1 });
    expect(turnAfter(...retries, modelRequested(1, 2)).value).toEqual({ thinking: "calling" });
  });

  test("is counted until an answer arrives", () => {
    const twice = [contextCompacted(), modelRequested(), modelFailed(5_000), contextCompacted(), modelRequested(1, 2)];
    expect(turnAfter(...twice).context.compactions).toBe(2);
    expect(turnAfter(...twice, modelResponded()).context.compactions).toBe(0);
  });
});

test("a turn without an input message calls the model again after a pause that dropped its call (row L5)", () => {
  const dropped = [turnStarted({ inputMessageIds: [] }), modelRequested(), modelFailed(5_000)];
  const held = turnAfter(...dropped, refused("paused"));
  expect(held.value).toBe("held");
  expect(turnAfter(...dropped, refused("paused"), resumed).value).toEqual(thinking);
  expect(turnAfter(...dropped, refused("paused"), stopSignalled("stop_requested"), resumed).value).toBe("finishing");
});

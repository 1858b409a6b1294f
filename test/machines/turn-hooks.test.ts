import { describe, expect, test } from "vitest";
import { type EntryBody, type HookCounts, noHooks } from "../../src/state/index.ts";
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
  turnId,
  turnStarted,
} from "./bodies.ts";
import { callHookApplied, callReviewed, hooksSettled, messagesReleased } from "./hook-bodies.ts";
import { turnAfter } from "./turn-after.ts";

const begun = (hooks: Partial<HookCounts>) => turnStarted({ hooks: { ...noHooks, ...hooks } });
const stop = { reason: "stop_requested", message: "enough", source: "hook:agent" } as const;
const thrown = { type: "effect.failed", turnId, effect: "a hook", error: failure } as const;
const wish = stopSignalled("stop_requested");
const abort = stopSignalled("user_requested");
const reviewed = { reviewDue: true } as const;
const interrupted = [toolSettled(0, 1, "interrupted"), toolSettled(1, 1, "interrupted")];
const thinking = { thinking: "assembling" };

describe("hooks of the input", () => {
  const welcomed = begun({ afterUserInput: 2 });
  const both = [hookApplied("afterUserInput", 0), hookApplied("afterUserInput", 1)];

  test("run first; without any, the turn thinks at once", () => {
    expect(turnAfter(begun({})).value).toEqual(thinking);
    expect(turnAfter(welcomed).value).toBe("welcoming");
    expect(turnAfter(welcomed, ...both).value).toBe("welcoming");
    expect(turnAfter(welcomed, ...both, hooksSettled("input")).value).toEqual(thinking);
  });

  test("stop() ends the turn before its first model call, once all of them have run", () => {
    const stopped = [hookApplied("afterUserInput", 0, { stop }), hookApplied("afterUserInput", 1)];
    expect(turnAfter(welcomed, ...stopped).value).toBe("welcoming");
    const snapshot = turnAfter(welcomed, ...stopped, hooksSettled("input"));
    expect(snapshot.value).toBe("finishing");
    expect(snapshot.context.step).toBe(0);
  });

  test("an error, a stop request or an abort ends the turn at once", () => {
    for (const end of [thrown, wish, abort]) expect(turnAfter(welcomed, end).value).toBe("finishing");
  });
});

describe("hooks before the model call", () => {
  const before = begun({ beforeLlm: 2 });

  test("stop() ends the turn before the call, even if other hooks are left", () => {
    expect(turnAfter(before, hookApplied("beforeLlm", 0)).value).toEqual(thinking);
    expect(turnAfter(before, hookApplied("beforeLlm", 0, { stop })).value).toBe("finishing");
  });

  test("run again in the next step", () => {
    const round = [hookApplied("beforeLlm"), modelRequested(), modelResponded(1, 1)];
    const next = turnAfter(before, ...round, toolSettled(0));
    expect(next.value).toEqual(thinking);
    expect(next.context.appliedHooks).toEqual([]);
  });
});

describe("hooks of an answer", () => {
  const final = [modelRequested(), modelResponded()];
  const asking = [modelRequested(), modelResponded(1, 2)];

  test("run before the turn continues", () => {
    const decided = begun({ afterLlm: 1 });
    expect(turnAfter(decided, ...final).value).toBe("deciding");
    expect(turnAfter(decided, ...final, hookApplied("afterLlm")).value).toBe("deciding");
    expect(turnAfter(decided, ...final, hookApplied("afterLlm"), hooksSettled("answer")).value).toBe("finishing");
    const round = turnAfter(decided, ...asking, hookApplied("afterLlm"), hooksSettled("answer"));
    expect(round.value).toBe("round");
    expect(Object.keys(round.children)).toEqual([callIdAt(0), callIdAt(1)]);
  });

  test("no tool call starts while they run", () => {
    const snapshot = turnAfter(begun({ beforeTools: 1 }), ...asking, hookApplied("beforeTools"));
    expect(snapshot.value).toBe("deciding");
    expect(Object.keys(snapshot.children).filter((id) => id.startsWith(turnId))).toEqual([]);
  });

  test("those of a round run only if tools are called", () => {
    expect(turnAfter(begun({ beforeTools: 1 }), ...final).value).toBe("finishing");
  });

  test("continue() after a final answer adds one step", () => {
    const decided = begun({ afterLlm: 1 });
    const goesOn = [hookApplied("afterLlm", 0, { continueRequested: true }), hooksSettled("answer")];
    expect(turnAfter(decided, ...final, ...goesOn).value).toEqual(thinking);
    const second = [modelRequested(2), modelResponded(2), hookApplied("afterLlm"), hooksSettled("answer", 2)];
    expect(turnAfter(decided, ...final, ...goesOn, ...second).value).toBe("finishing");
  });

  test("a step requested by a hook is kept if its call is repeated after a pause", () => {
    const goesOn = [hookApplied("afterLlm", 0, { continueRequested: true }), hooksSettled("answer")];
    const failed = [modelRequested(2), modelFailed(5_000, { step: 2 })];
    const held = [...final, ...goesOn, ...failed, refused("paused", "model.requested", { step: 2 })];
    expect(turnAfter(begun({ afterLlm: 1 }), ...held).value).toBe("held");
    expect(turnAfter(begun({ afterLlm: 1 }), ...held, resumed).value).toEqual(thinking);
  });

  test("stop() prevents the tool calls; they get results, and then the turn ends", () => {
    const stopped = [...asking, hookApplied("afterLlm", 0, { stop }), hooksSettled("answer")];
    const snapshot = turnAfter(begun({ afterLlm: 1 }), ...stopped);
    expect(snapshot.value).toBe("stopping");
    expect(Object.keys(snapshot.children).filter((id) => id.startsWith(turnId))).toEqual([]);
    expect(turnAfter(begun({ afterLlm: 1 }), ...stopped, ...interrupted).value).toBe("finishing");
  });

  test("an error, a stop request or an abort gives the calls results first", () => {
    const decided = begun({ afterLlm: 1 });
    for (const end of [thrown, wish, abort]) {
      expect(turnAfter(decided, ...asking, end).value).toBe("stopping");
      expect(turnAfter(decided, ...asking, end, ...interrupted).value).toBe("finishing");
      expect(turnAfter(decided, ...final, end).value).toBe("finishing");
    }
  });
});

describe("hooks that review results", () => {
  const inRound = [modelRequested(), modelResponded(1, 2)];
  const first = { ...toolSettled(0), ...reviewed };
  const second = { ...toolSettled(1, 1, "error"), ...reviewed };

  test("the round ends once every result is reviewed, in any order", () => {
    expect(turnAfter(...inRound, first, callReviewed(0), second).value).toBe("round");
    expect(turnAfter(...inRound, first, second, callReviewed(1)).value).toBe("round");
    expect(turnAfter(...inRound, first, second, callReviewed(1), callReviewed(0)).value).toEqual(thinking);
    expect(turnAfter(...inRound, first, callReviewed(0), second, callReviewed(1)).value).toEqual(thinking);
  });

  test("a review does not affect another running call", () => {
    const snapshot = turnAfter(...inRound, first, callReviewed(0));
    expect(snapshot.context).toMatchObject({ openCallIds: [callIdAt(1)], unreviewedCallIds: [] });
  });

  test("after stop() of one of them the round still ends", () => {
    const stops = [first, callHookApplied("afterEachTool", 0, stop), callReviewed(0)];
    expect(turnAfter(...inRound, ...stops).value).toBe("round");
    expect(turnAfter(...inRound, ...stops, second, callReviewed(1)).value).toBe("finishing");
  });

  test("an error ends the turn, and unreviewed results count as reviewed", () => {
    const failed = [...inRound, first, second, thrown];
    expect(turnAfter(...failed).value).toBe("stopping");
    expect(turnAfter(...failed, callReviewed(0)).value).toBe("stopping");
    expect(turnAfter(...failed, callReviewed(0), callReviewed(1)).value).toBe("finishing");
  });

  test("two errors at once: open calls still get their outcome first", () => {
    const failed = [...inRound, first, thrown, { ...thrown, effect: "reviewCall" }];
    expect(turnAfter(...failed).value).toBe("stopping");
    expect(turnAfter(...failed, callReviewed(0), toolSettled(1, 1, "interrupted")).value).toBe("finishing");
    const cannot = { ...thrown, effect: "interruptOpenWork" };
    expect(turnAfter(...failed, cannot).value).toBe("finishing");
  });

  test("an abort does not wait for them", () => {
    const aborted = [...inRound, first, abort];
    expect(turnAfter(...aborted).value).toBe("stopping");
    expect(turnAfter(...aborted, callReviewed(0)).value).toBe("stopping");
    expect(turnAfter(...aborted, callReviewed(0), toolSettled(1, 1, "interrupted")).value).toBe("finishing");
  });

  test("hooks of the round run once all results are reviewed", () => {
    const settled = [...inRound, first, second, callReviewed(0)];
    const hooks = begun({ afterEachTool: 1, afterTools: 1 });
    expect(turnAfter(hooks, ...settled).value).toBe("round");
    expect(turnAfter(hooks, ...settled, callReviewed(1)).value).toBe("settling");
    expect(turnAfter(hooks, ...settled, callReviewed(1), hookApplied("afterTools")).value).toEqual(thinking);
  });
});

describe("hooks of the end", () => {
  const last = begun({ onComplete: 1 });
  const final = [modelRequested(), modelResponded()];

  test("run once, last", () => {
    expect(turnAfter(last, ...final).value).toBe("completing");
    expect(turnAfter(last, ...final, hookApplied("onComplete")).value).toBe("completing");
    expect(turnAfter(last, ...final, hookApplied("onComplete"), hooksSettled("end")).value).toBe("finishing");
  });

  test("held messages enter the conversation before them", () => {
    expect(turnAfter(last, ...final, messagesReleased("held")).value).toBe("completing");
  });

  const ends: readonly { how: string; bodies: readonly EntryBody[] }[] = [
    { how: "a reached limit", bodies: [refused("budget")] },
    { how: "a stop request in a round", bodies: [modelRequested(), modelResponded(1, 1), wish, toolSettled(0)] },
    { how: "stop() of a hook before the call", bodies: [hookApplied("beforeLlm", 0, { stop })] },
    { how: "a stop request before the call", bodies: [wish] },
    { how: "a stop request during a wait", bodies: [refused("mustWait"), wish, budgetFreed] },
    {
      how: "a stop request of a hook after an answer with calls",
      bodies: [modelRequested(), modelResponded(1, 2), wish, ...interrupted],
    },
  ];
  test.each(ends)("run after $how", ({ bodies }) => {
    expect(turnAfter(last, ...bodies).value).toBe("completing");
  });

  test("run after a stop request by a hook of the answer, once every call has its result", () => {
    const hooks = begun({ afterLlm: 1, onComplete: 1 });
    const asking = [modelRequested(), modelResponded(1, 2)];
    expect(turnAfter(hooks, ...asking, wish).value).toBe("stopping");
    expect(turnAfter(hooks, ...asking, wish, ...interrupted).value).toBe("completing");
    expect(turnAfter(hooks, ...final, wish).value).toBe("completing");
  });

  test("run after a stop request by a hook of the input or of a round", () => {
    expect(turnAfter(begun({ afterUserInput: 1, onComplete: 1 }), wish).value).toBe("completing");
    const hooks = begun({ afterTools: 1, onComplete: 1 });
    const round = [modelRequested(), modelResponded(1, 1), toolSettled(0)];
    expect(turnAfter(hooks, ...round, wish).value).toBe("completing");
  });

  test("do not run after a failure", () => {
    expect(turnAfter(last, thrown).value).toBe("finishing");
    expect(turnAfter(last, modelRequested(), modelFailed(null)).value).toBe("finishing");
    expect(turnAfter(last, modelRequested(), modelResponded(1, 2), thrown, ...interrupted).value).toBe("finishing");
    const failed = [modelRequested(), modelResponded(1, 1), toolSettled(0, 1, "error")];
    expect(turnAfter({ ...last, maxConsecutiveToolFailures: 1 }, ...failed).value).toBe("finishing");
  });

  test("do not run after an abort, even after an earlier stop request", () => {
    const asking = [modelRequested(), modelResponded(1, 2)];
    for (const before of [[], [wish]]) {
      expect(turnAfter(last, modelRequested(), ...before, abort, modelFailed(null)).value).toBe("finishing");
      expect(turnAfter(last, ...asking, ...before, abort, ...interrupted).value).toBe("finishing");
    }
    expect(turnAfter(last, refused("aborted", "model.requested", { agentId: "lead" })).value).toBe("finishing");
  });

  test("one that throws or requests a stop does not run again, and an abort does not wait for it", () => {
    for (const end of [thrown, wish, abort]) expect(turnAfter(last, ...final, end).value).toBe("finishing");
  });
});

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { limitNameSchema } from "../../src/budget/index.ts";
import {
  type Continuation,
  cutsNow,
  priorityOf,
  type StopReason,
  type StopSignal,
  shouldStop,
  signalOfLimit,
  signalOfRefusal,
  stopReasons,
  strongestSignal,
  wasForceStopped,
} from "../../src/state/index.ts";
import { at, refused } from "../machines/bodies.ts";

function signal(reason: StopReason, message = ""): StopSignal {
  return { reason, message, source: "test" };
}

function continuation(reasons: readonly StopReason[], isContinuationRequested: boolean): Continuation {
  return { stopSignals: reasons.map((reason) => signal(reason)), isContinuationRequested };
}

describe("shouldStop decides in this order (row S5)", () => {
  test.each([
    { signals: 1, goesOn: false, tools: true, stops: true, why: "a stop signal stops" },
    { signals: 1, goesOn: false, tools: false, stops: true, why: "a stop signal stops" },
    { signals: 1, goesOn: true, tools: true, stops: false, why: "a requested continuation overrules it" },
    { signals: 1, goesOn: true, tools: false, stops: false, why: "a requested continuation overrules it" },
    { signals: 0, goesOn: true, tools: false, stops: false, why: "a requested continuation continues" },
    { signals: 0, goesOn: true, tools: true, stops: false, why: "a requested continuation continues" },
    { signals: 0, goesOn: false, tools: true, stops: false, why: "tool calls continue" },
    { signals: 0, goesOn: false, tools: false, stops: true, why: "otherwise it stops" },
  ])("$why (signals $signals, continuation $goesOn, tools $tools)", ({ signals, goesOn, tools, stops }) => {
    const reasons = Array.from({ length: signals }, () => "stop_requested" as const);
    expect(shouldStop(continuation(reasons, goesOn), tools)).toBe(stops);
  });

  test("every signal stops in the same way", () => {
    for (const reason of stopReasons) expect(shouldStop(continuation([reason], false), true)).toBe(true);
  });
});

describe("stop reasons (row S6)", () => {
  test("are sorted by priority", () => {
    expect(stopReasons).toEqual([
      "error",
      "stop_requested",
      "steps_limit",
      "token_limit",
      "cost_limit",
      "time_limit",
      "retry_limit",
      "refusal",
      "finish_reason",
      "user_requested",
      "completed",
      "unknown",
    ]);
    expect(stopReasons.map((reason) => priorityOf(reason))).toEqual(stopReasons.map((_, index) => index));
  });

  const reasons = fc.array(fc.constantFrom(...stopReasons), { maxLength: 8 });

  test("the highest of several counts, and the first among equals", () => {
    fc.assert(
      fc.property(reasons, (several) => {
        const signals = several.map((reason, index) => signal(reason, String(index)));
        const strongest = strongestSignal(signals);
        const highest = [...several].sort((one, other) => priorityOf(one) - priorityOf(other))[0];
        expect(strongest?.reason).toBe(highest);
        expect(strongest).toBe(signals.find(({ reason }) => reason === highest));
      }),
    );
  });

  test("all but completed and finish_reason count as a forced stop", () => {
    const natural = stopReasons.filter((reason) => !wasForceStopped(reason));
    expect(natural).toEqual(["finish_reason", "completed"]);
  });

  test("an abort, a time limit, used-up attempts and an error cut running calls; the others wait for the end of the step", () => {
    const cutting = stopReasons.filter((reason) => cutsNow(signal(reason)));
    expect(cutting).toEqual(["error", "time_limit", "retry_limit", "user_requested"]);
  });
});

describe("signals of limits and refusals", () => {
  test.each(limitNameSchema.options)("%s names its account", (limit) => {
    const { reason, accountId, message, source } = signalOfLimit(limit, "turn:desk#1");
    expect(reason).toMatch(/^(steps|token|cost|time)_limit$/);
    expect({ accountId, source }).toEqual({ accountId: "turn:desk#1", source: "budget" });
    expect(message).toMatch(/^desk, this turn: /);
  });

  test("a reached limit and an abort are signals, a wait is not", () => {
    expect(signalOfRefusal(at(refused("budget"), 1))?.reason).toBe("token_limit");
    expect(signalOfRefusal(at(refused("aborted"), 1))?.reason).toBe("user_requested");
    expect(signalOfRefusal(at(refused("unpriced"), 1))?.reason).toBe("error");
    expect(signalOfRefusal(at(refused("mustWait"), 1))).toBeUndefined();
    expect(signalOfRefusal(at(refused("paused"), 1))).toBeUndefined();
  });
});

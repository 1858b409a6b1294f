import { describe, expect, test } from "vitest";
import { endingCallOf, noHooks } from "../../src/state/index.ts";
import {
  callIdAt,
  hookApplied,
  modelRequested,
  modelResponded,
  stopSignalled,
  toolSettled,
  turnId,
  turnStarted,
} from "./bodies.ts";
import { turnAfter } from "./turn-after.ts";

const ends = (index: number) => ({ ...toolSettled(index), endsTurn: true as const });
const checked = (valid: boolean, callId = callIdAt(0)) =>
  ({
    type: "output.checked",
    turnId,
    step: 1,
    messageId: valid ? `${turnId}:1:answer` : callId,
    valid,
    callId,
  }) as const;

describe("a turn that a tool ends", () => {
  const round = [modelRequested(), modelResponded(1, 2)];

  test("settles its round when all calls have results, and takes the first call in order", () => {
    expect(turnAfter(...round, ends(1)).value).toBe("round");
    const settling = turnAfter(...round, ends(1), ends(0));
    expect(settling.value).toBe("settling");
    expect(endingCallOf(settling.context)).toBe(callIdAt(0));
    expect(endingCallOf(turnAfter(...round, ends(1), toolSettled(0, 1, "error")).context)).toBe(callIdAt(1));
    expect(turnAfter(...round, toolSettled(0), toolSettled(1)).value).toEqual({ thinking: "assembling" });
  });

  test("ends with the answer, and continues without one", () => {
    const done = turnAfter(...round, ends(0), toolSettled(1), checked(true));
    expect(done.value).toBe("finishing");
    expect(done.context.outputMessageId).toBe(`${turnId}:1:answer`);
    expect(turnAfter(...round, ends(0), toolSettled(1), checked(false)).value).toEqual({ thinking: "assembling" });
  });

  test("checks the result after the hooks of the round, and completes with the hooks of the end", () => {
    const begun = turnStarted({ hooks: { ...noHooks, afterTools: 1, onComplete: 1 } });
    const hooked = [begun, ...round, ends(0), toolSettled(1), hookApplied("afterTools")];
    expect(turnAfter(...hooked).value).toBe("settling");
    expect(turnAfter(...hooked, checked(true)).value).toBe("completing");
  });

  test("gives way to a stop and to an input that no call has seen", () => {
    const settling = [...round, ends(0), toolSettled(1)];
    const stopped = turnAfter(...settling, stopSignalled("user_requested"));
    expect(endingCallOf(stopped.context)).toBeUndefined();
    const steered = { type: "turn.steered", turnId, step: 1, messageId: "m", actorId: null } as never;
    const late = turnAfter(...settling, steered);
    expect(endingCallOf(late.context)).toBeUndefined();
    expect(turnAfter(...settling, steered, checked(true)).value).toEqual({ thinking: "assembling" });
  });
});

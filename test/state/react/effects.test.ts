import { describe, expect, it } from "vitest";
import { effectsAt } from "../../../src/state/react/index.ts";
import { completed, expanded, finishes, goesOn, reloaded, result, runInputs, started, user } from "./run-inputs.ts";

describe("R5 effects follow from the state", () => {
  it("runs a tool for each call without a result and calls the model when the last one is in", () => {
    const asked = runInputs([user("a"), goesOn(["t1", "t2"])]);
    expect(effectsAt(asked)).toEqual({ callLlm: false, runTools: ["t1", "t2"] });
    const half = runInputs([result("t1")], asked);
    expect(effectsAt(half)).toEqual({ callLlm: false, runTools: ["t2"] });
    expect(effectsAt(runInputs([result("t2")], half))).toEqual({ callLlm: true, runTools: [] });
  });

  it("waits for missing results even after a new message", () => {
    const state = runInputs([user("a"), goesOn(["t"]), user("b")]);
    expect(effectsAt(state).callLlm).toBe(false);
  });

  it("does not treat the model's own message as news", () => {
    const state = runInputs([user("a"), started("b"), completed("b"), finishes()]);
    expect(effectsAt(state).callLlm).toBe(false);
  });

  it.each([
    ["the caller passes the call's start", 1],
    ["the start is derived", undefined],
  ])("asks for another call after a message that arrived during the call, when %s", (_how, start) => {
    const during = runInputs([user("a"), started("b"), user("c"), completed("b")]);
    const state = runInputs([finishes(start)], during);
    expect(effectsAt(state).callLlm).toBe(true);
    expect(effectsAt(runInputs([finishes()], state)).callLlm).toBe(false);
  });

  it("asks for one call, not two, if both messages were there at its start", () => {
    const both = runInputs([user("a"), user("b")]);
    expect(effectsAt(runInputs([finishes(both.ordinal)], both)).callLlm).toBe(false);
  });

  it("does not ask again for a message that arrived while tools ran and that the next call saw", () => {
    const ready = runInputs([user("a"), goesOn(["t1", "t2"]), result("t1"), user("b"), result("t2")]);
    expect(effectsAt(runInputs([finishes()], ready)).callLlm).toBe(false);
  });

  it("asks for a call at once if the model only called internal tools", () => {
    const state = runInputs([user("a"), expanded, goesOn([])]);
    expect(effectsAt(state)).toEqual({ callLlm: true, runTools: [] });
    expect(state.toolCalls).toEqual({});
    expect(effectsAt(runInputs([finishes()], state)).callLlm).toBe(false);
  });

  it("drops the pending continuation when the loop is completed", () => {
    const state = runInputs([user("a"), goesOn(["t"]), goesOn([]), finishes()]);
    expect(effectsAt(state)).toEqual({ callLlm: false, runTools: [] });
  });

  it("ignores the late observation of a call that a later call has overtaken", () => {
    const state = runInputs([user("a"), user("b"), finishes(2)]);
    expect(runInputs([goesOn(["t"], 1)], state)).toBe(state);
    expect(runInputs([finishes(2)], state)).toBe(state);
  });

  it("continues after a new call that repeats the ids of old ones", () => {
    const ready = runInputs([user("a"), goesOn(["t"]), result("t")]);
    const state = runInputs([goesOn(["t"], ready.ordinal)], ready);
    expect(effectsAt(state)).toEqual({ callLlm: true, runTools: [] });
  });

  it("treats a reloaded result as known if an earlier call saw it, and as news otherwise", () => {
    const seen = runInputs([user("a"), goesOn(["t"]), result("t"), finishes(), reloaded(["t"])]);
    expect(effectsAt(seen)).toEqual({ callLlm: false, runTools: [] });
    const unseen = runInputs([user("a"), goesOn(["t"]), finishes(), result("t"), reloaded(["t"])]);
    expect(effectsAt(unseen)).toEqual({ callLlm: true, runTools: [] });
  });

  it("runs a call without a result from a finished loop only if it is loaded again", () => {
    const idle = runInputs([user("a"), goesOn(["t"]), finishes()]);
    expect(effectsAt(idle)).toEqual({ callLlm: false, runTools: [] });
    expect(effectsAt(runInputs([reloaded(["t"])], idle)).runTools).toEqual(["t"]);
  });
});

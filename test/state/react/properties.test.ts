import { assert, array, constantFrom, integer, oneof, option, property, subarray, tuple } from "fast-check";
import type { Arbitrary } from "fast-check";
import { describe, expect, it } from "vitest";
import {
  agentTransition,
  effectsAt,
  type FoldedReact,
  foldReact,
  initialAgentState,
  needsOf,
  type ReactInput,
  type ReactState,
  reactInputSchema,
  reactStateSchema,
  stepOf,
} from "../../../src/state/react/index.ts";
import { amount } from "../../support/full.ts";
import { inputOf, stateOf } from "./as-state.ts";
import { completed, expanded, finishes, goesOn, reloaded, result, started, user } from "./run-inputs.ts";

const messageId = constantFrom("a", "b", "c", "d", "e", "f");
const callIds = ["t1", "t2", "t3", "t4", "0", "10"];
const time = integer({ min: 0, max: 4_000_000_000_000 });
/** How many ordinals ago an observed call started; `undefined` if the caller does not pass it. */
const age = option(integer({ min: 0, max: 3 }), { nil: undefined });

/** Creates an input for a state: the start of a call is relative to the state's ordinal. */
type Plan = (state: ReactState) => ReactInput;

const plan: Arbitrary<Plan> = oneof(
  tuple(messageId, time).map(
    ([id, at]) =>
      () =>
        user(id, at),
  ),
  tuple(messageId, time).map(
    ([id, at]) =>
      () =>
        started(id, at),
  ),
  tuple(messageId, time).map(
    ([id, at]) =>
      () =>
        completed(id, "text", at),
  ),
  tuple(subarray(callIds), age).map(
    ([ids, ago]) =>
      (state: ReactState) =>
        goesOn(ids, startOf(state, ago)),
  ),
  tuple(age, time).map(
    ([ago, at]) =>
      (state: ReactState) =>
        finishes(startOf(state, ago), at),
  ),
  tuple(constantFrom(...callIds), time).map(
    ([id, at]) =>
      () =>
        result(id, at),
  ),
  constantFrom(() => expanded),
  subarray(callIds).map((ids) => () => reloaded(ids)),
);

function startOf(state: ReactState, ago: number | undefined): number | undefined {
  return ago === undefined ? undefined : Math.max(0, state.ordinal - ago);
}

/** Every state after each input, including the initial one. */
function statesOf(inputs: readonly ReactInput[]): ReactState[] {
  const states = [initialAgentState()];
  for (const input of inputs) states.push(agentTransition(input)(states.at(-1) ?? initialAgentState()));
  return states;
}

const inputsArbitrary: Arbitrary<ReactInput[]> = array(plan, { maxLength: 40 }).map((plans) => {
  const inputs: ReactInput[] = [];
  let state = initialAgentState();
  for (const next of plans) {
    const input = next(state);
    inputs.push(input);
    state = agentTransition(input)(state);
  }
  return inputs;
});

function holds(check: (inputs: ReactInput[]) => void): void {
  assert(property(inputsArbitrary, check), { numRuns: amount(500, 83) });
}

function withTimes(inputs: readonly ReactInput[], times: readonly number[]): ReactInput[] {
  return inputs.map((input, index) => {
    const timestamp = times[index % times.length] ?? 0;
    if (input.type === "re-act-observed") return { ...input, timestamp, calledLlmAt: timestamp };
    if (input.type !== "tool-call-completed") return { ...input, timestamp };
    return { ...input, timestamp, result: { ...input.result, receivedAt: timestamp } };
  });
}

describe("the ReAct core, for any inputs", () => {
  it("returns equal states for equal inputs (R1)", () => {
    holds((inputs) => {
      expect(statesOf(structuredClone(inputs))).toEqual(statesOf(inputs));
    });
  });

  it("is the same with a list of calls, as stored in a turn's fold (R8)", () => {
    holds((inputs) => {
      let react: FoldedReact = { ...initialAgentState(), toolCalls: [] };
      for (const [index, state] of statesOf(inputs).entries()) {
        expect(stateOf(react)).toEqual(state);
        const { callLlm, runTools } = effectsAt(state);
        expect(needsOf(react)).toEqual({ callLlm, runsTools: runTools.length > 0 });
        const input = inputs[index];
        if (!input) continue;
        expect(inputOf(stepOf(input))).toEqual(input);
        const [before, written] = [react, JSON.stringify(react)];
        react = foldReact(before, stepOf(input));
        expect(react === before).toBe(agentTransition(input)(state) === state);
        expect(JSON.stringify(before)).toBe(written);
      }
    });
  });

  it("goes through JSON and the schema unchanged at every state (R1)", () => {
    holds((inputs) => {
      for (const input of inputs) expect(reactInputSchema.parse(JSON.parse(JSON.stringify(input)))).toEqual(input);
      for (const state of statesOf(inputs))
        expect(reactStateSchema.parse(JSON.parse(JSON.stringify(state)))).toEqual(state);
    });
  });

  it("ignores an input that it already has (R4)", () => {
    holds((inputs) => {
      for (const [index, state] of statesOf(inputs).slice(1).entries()) {
        const input = inputs[index];
        // Without its call's start, a second observation looks like the next call's; window expansions add up.
        if (input === undefined || input.type === "context-window-expanded") continue;
        if (input.type === "re-act-observed" && input.calledLlmOrdinal === undefined) continue;
        expect(agentTransition(input)(state)).toBe(state);
      }
    });
  });

  it("counts in `ordinal` the inputs that changed it, and only those (R4)", () => {
    holds((inputs) => {
      const states = statesOf(inputs);
      for (const [index, state] of states.slice(1).entries()) {
        const before = states[index];
        expect(state.ordinal).toBe(state === before ? before.ordinal : (before?.ordinal ?? 0) + 1);
      }
    });
  });

  it("calls for the same effects at any clock time (R4)", () => {
    assert(
      property(inputsArbitrary, array(time, { minLength: 1, maxLength: 40 }), (inputs, times) => {
        const other = statesOf(withTimes(inputs, times));
        expect(other.map(effectsAt)).toEqual(statesOf(inputs).map(effectsAt));
      }),
      { numRuns: amount(500, 83) },
    );
  });

  it("never has a window wider than its messages (R4)", () => {
    holds((inputs) => {
      for (const { reActContext, messages } of statesOf(inputs)) {
        expect(reActContext.contextWindowSize).toBeLessThanOrEqual(messages.length);
      }
    });
  });

  it("never calls the model while a result is missing, and runs exactly the calls without one (R5)", () => {
    holds((inputs) => {
      for (const state of statesOf(inputs)) {
        const missing = state.reActContext.toolCallIds.filter((id) => state.toolCalls[id]?.result === null);
        const effects = effectsAt(state);
        expect(effects.runTools).toEqual(missing);
        expect(effects.callLlm && missing.length > 0).toBe(false);
      }
    });
  });

  it("calls again for a user message that arrived after the start of the last call (R5)", () => {
    holds((inputs) => {
      for (const state of statesOf(inputs)) {
        const unseen = state.messages.some(({ role, ordinal }) => role === "user" && ordinal > state.calledLlmOrdinal);
        const { callLlm, runTools } = effectsAt(state);
        expect(unseen && runTools.length === 0 && !callLlm).toBe(false);
        expect(state.callDueOrdinal !== null).toBe(callLlm);
      }
    });
  });

  it("calls for nothing once the model has answered (R5)", () => {
    holds((inputs) => {
      const last = statesOf(inputs).at(-1) ?? initialAgentState();
      const done = agentTransition(finishes(last.ordinal))(last);
      expect(effectsAt(done)).toEqual({ callLlm: last.calledLlmOrdinal === last.ordinal, runTools: [] });
    });
  });
});

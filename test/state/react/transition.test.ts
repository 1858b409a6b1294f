import { describe, expect, it } from "vitest";
import { InvalidInputError } from "../../../src/errors/index.ts";
import {
  agentTransition,
  effectsAt,
  initialAgentState,
  reactInputSchema,
  reactStateSchema,
} from "../../../src/state/react/index.ts";
import { completed, expanded, finishes, goesOn, reloaded, result, runInputs, started, user } from "./run-inputs.ts";

const many = (count: number) => Array.from({ length: count }, (_, index) => user(`m${index}`));

describe("R1 the machine is a pure, curried function over checked values", () => {
  it("does not modify the state it is given", () => {
    const before = runInputs([user("a"), goesOn(["t"])]);
    const copy = structuredClone(before);
    agentTransition(result("t"))(before);
    agentTransition(user("b"))(before);
    expect(before).toEqual(copy);
  });

  it("refuses invalid inputs, and keys that reach a prototype", () => {
    expect(reactInputSchema.safeParse({ type: "user-message-received", messageId: "a", content: "x" }).success).toBe(
      false,
    );
    for (const key of ["__proto__", "constructor", "prototype"]) {
      expect(reactInputSchema.safeParse(user(key)).success).toBe(false);
      const text = JSON.stringify(goesOn(["safe"])).replace('"safe"', `"${key}"`);
      expect(reactInputSchema.safeParse(JSON.parse(text)).success).toBe(false);
      const stored = JSON.stringify(initialAgentState()).replace(
        '"tools":{}',
        `"tools":{"${key}":{"description":"","schema":"{}"}}`,
      );
      expect(reactStateSchema.safeParse(JSON.parse(stored)).success).toBe(false);
    }
  });

  it("changes no prototype even for an input that was not parsed", () => {
    const input = JSON.parse(JSON.stringify(goesOn(["safe"])).replace('"safe"', '"__proto__"'));
    const state = runInputs([user("a"), input]);
    expect(Object.getPrototypeOf(state.toolCalls)).toBe(Object.prototype);
    expect(runInputs([result("constructor")])).toEqual(initialAgentState());
  });

  it("refuses stored states whose fields contradict each other", () => {
    const state = runInputs([user("a"), goesOn(["t"])]);
    const wide = { ...state, reActContext: { ...state.reActContext, contextWindowSize: 2 } };
    expect(reactStateSchema.safeParse(wide).error?.issues[0]?.path).toEqual(["reActContext", "contextWindowSize"]);
    expect(reactStateSchema.safeParse({ ...state, toolCalls: {} }).error?.message).toContain('no tool call \\"t\\"');
  });
});

describe("R2 the state contains messages, tools, tool calls, the context and the last call", () => {
  it("starts empty, with the tools it is given", () => {
    const tools = { search: { description: "Searches.", schema: '{"type":"object"}' } };
    expect(initialAgentState({ tools })).toMatchObject({ messages: [], tools, toolCalls: {}, calledLlmAt: 0 });
    expect(effectsAt(initialAgentState())).toEqual({ callLlm: false, runTools: [] });
  });

  it("records calls and results, successes and failures, with their times", () => {
    const failure = { isSuccess: false as const, error: "no network", receivedAt: 7 };
    const state = runInputs([
      user("a"),
      goesOn(["t1", "t2"]),
      result("t1", 5),
      { type: "tool-call-completed", toolCallId: "t2", result: failure, timestamp: 7 },
    ]);
    expect(state.toolCalls["t1"]).toMatchObject({
      name: "search",
      parameters: '{"query":"x"}',
      calledAt: 1000,
      result: { isSuccess: true, content: "result of t1", receivedAt: 5 },
    });
    expect(state.toolCalls["t2"]?.result).toMatchObject(failure);
    expect(state.reActContext.toolCallIds).toEqual(["t1", "t2"]);
  });
});

describe("R3 inputs", () => {
  it("processes the conversation of the design document from question to answer", () => {
    const asked = runInputs([user("a"), goesOn(["t"]), result("t")]);
    expect(effectsAt(asked)).toEqual({ callLlm: true, runTools: [] });
    const streaming = runInputs([started("b")], asked);
    expect(streaming.messages[1]).toMatchObject({ role: "assistant", content: "", isStreaming: true });
    const state = runInputs([completed("b", "Hello!"), finishes(undefined, 42)], streaming);
    expect(state.messages.map(({ role, content }) => [role, content])).toEqual([
      ["user", "text of a"],
      ["assistant", "Hello!"],
    ]);
    expect(state.calledLlmAt).toBe(42);
    expect(effectsAt(state)).toEqual({ callLlm: false, runTools: [] });
  });

  it("empties the context of a completed loop and keeps its calls in the history", () => {
    const state = runInputs([user("a"), goesOn(["t"]), result("t"), finishes()]);
    expect(state.reActContext.toolCallIds).toEqual([]);
    expect(state.toolCalls["t"]?.result).not.toBeNull();
  });

  it("loads known calls of the history into the context, each once", () => {
    const before = runInputs([user("a"), goesOn(["t"]), result("t"), finishes(), user("b")]);
    const state = runInputs([reloaded(["t", "unknown", "t"])], before);
    expect(state.reActContext.toolCallIds).toEqual(["t"]);
    expect(runInputs([reloaded(["t"])], state)).toBe(state);
  });
});

describe("R4 ordinals determine the order", () => {
  it("counts two messages within one millisecond as two, in order of arrival", () => {
    const state = runInputs([user("late", 2000), user("same", 2000), user("early", 1)]);
    expect(state.messages.map(({ id }) => id)).toEqual(["late", "same", "early"]);
  });

  it("notices a message within the millisecond in which the model call started", () => {
    const asked = runInputs([user("a", 1000)]);
    const state = runInputs([user("b", 1000), finishes(asked.ordinal, 1000)], asked);
    expect(effectsAt(state).callLlm).toBe(true);
  });

  it.each([
    ["backwards", 1],
    ["forwards", 9_000_000_000_000],
  ])("notices results and messages after the clock jumped %s", (_direction, time) => {
    const waiting = runInputs([user("a", 5000), goesOn(["t"]), result("t", time)]);
    expect(effectsAt(waiting).callLlm).toBe(true);
    const idle = runInputs([finishes(undefined, time)], waiting);
    expect(effectsAt(idle).callLlm).toBe(false);
    expect(effectsAt(runInputs([user("b", 2)], idle)).callLlm).toBe(true);
  });

  it("returns the same object for duplicates and unknown ids", () => {
    const state = runInputs([user("a"), started("b"), completed("b"), goesOn(["t"]), result("t")]);
    for (const input of [user("a"), user("b"), started("a"), started("b"), completed("b", "other")]) {
      expect(runInputs([input], state)).toBe(state);
    }
    for (const input of [completed("a"), completed("unknown"), result("t", 9), result("unknown"), goesOn(["t"])]) {
      expect(runInputs([input], state)).toBe(state);
    }
    expect(runInputs([reloaded(["unknown"]), reloaded([]), expanded], state)).toBe(state);
  });

  it("keeps the time at which a message started when it is completed", () => {
    const state = runInputs([started("b", 100), user("c", 150), completed("b", "text", 900)]);
    expect(state.messages[0]).toMatchObject({ id: "b", content: "text", timestamp: 100 });
  });

  it("widens the window by 10, or by the parameter, up to the number of messages", () => {
    const state = runInputs(many(23));
    const widths = [state];
    for (const by of [undefined, 2, 10]) {
      const last = widths.at(-1) ?? state;
      widths.push(agentTransition(expanded, by === undefined ? {} : { expandContextWindowSize: by })(last));
    }
    expect(widths.map(({ reActContext }) => reActContext.contextWindowSize)).toEqual([10, 20, 22, 23]);
    expect(runInputs([finishes()], widths.at(-1)).reActContext.contextWindowSize).toBe(10);
  });

  it.each([0, -1, 1.5, Number.NaN])("refuses to widen by %s", (expandContextWindowSize) => {
    expect(() => agentTransition(expanded, { expandContextWindowSize })).toThrow(InvalidInputError);
  });
});

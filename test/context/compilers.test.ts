import { describe, expect, test } from "vitest";
import {
  type CompileInput,
  expandedWindow,
  fullHistory,
  reactHistory,
  windowHistory,
  withoutTraces,
} from "../../src/context/index.ts";
import { InvalidInputError } from "../../src/errors/index.ts";
import { type Message, textOf } from "../../src/state/index.ts";
import { answer, hookMessage, idsOf, input, round, summary, turn, wholeTurn } from "./messages.ts";

function given(history: readonly Message[], more: Partial<CompileInput> = {}): CompileInput {
  return { history, turnId: turn(9), contextWindowSize: null, loadedCallIds: [], earlier: [], ...more };
}

const open = [input(turn(9)), ...round(turn(9), 1, 2)];

test("fullHistory returns the whole history unchanged", () => {
  const history = [...wholeTurn(1), ...wholeTurn(2), ...open];
  expect(fullHistory().compile(given(history))).toBe(history);
});

describe("windowHistory", () => {
  test("returns the newest messages", () => {
    const history = [...wholeTurn(1), ...wholeTurn(2), ...open];
    expect(windowHistory(8).compile(given(history))).toEqual(history.slice(-8));
  });

  test("leaves out results that would be separated from their call", () => {
    const history = [...wholeTurn(1), ...wholeTurn(2), ...open];
    // The sixth newest message is the result of the second turn's call.
    expect(windowHistory(6).compile(given(history))).toEqual(history.slice(-5));
  });

  test("shows the whole open turn even if it alone exceeds the size", () => {
    expect(windowHistory(2).compile(given([...wholeTurn(1), ...open]))).toEqual(open);
  });

  test("a summary stays in front and is not counted", () => {
    const history = [summary(turn(2), 1), ...wholeTurn(3), ...open];
    expect(idsOf(windowHistory(5).compile(given(history)))).toEqual(
      idsOf([summary(turn(2), 1), answer(turn(3), 2), ...open]),
    );
  });

  test.each([0, -1, 1.5, Number.NaN])("a size of %s is refused", (size) => {
    expect(() => windowHistory(size)).toThrow(InvalidInputError);
    expect(() => windowHistory(size)).toThrow(/windowHistory\(\): its size is .*whole number of at least 1/);
  });
});

test("withoutTraces: questions and answers of earlier turns, and everything of the open turn", () => {
  const first = [input(turn(1)), ...round(turn(1), 1), hookMessage(turn(1), 1), answer(turn(1), 2)];
  expect(withoutTraces().compile(given([...first, ...open, hookMessage(turn(9), 1)]))).toEqual([
    input(turn(1)),
    answer(turn(1), 2),
    ...open,
    hookMessage(turn(9), 1),
  ]);
});

describe("reactHistory (seed 001)", () => {
  const history = [...wholeTurn(1, 2), ...wholeTurn(2), ...wholeTurn(3), ...open];

  test("returns the newest user and assistant messages without earlier tool rounds, and the whole open turn", () => {
    // The open turn's input is one of the four.
    expect(idsOf(reactHistory({ contextWindowSize: 4 }).compile(given(history)))).toEqual(
      idsOf([answer(turn(2), 2), input(turn(3)), answer(turn(3), 2), ...open]),
    );
  });

  test("rounds of the open turn do not shrink the window of the conversation", () => {
    const compiler = reactHistory({ contextWindowSize: 3 });
    const before = compiler.compile(given(history));
    const after = compiler.compile(given([...history, ...round(turn(9), 2, 3), ...round(turn(9), 3)]));
    expect(after.slice(0, before.length)).toEqual(before);
  });

  test("the turn's own window takes precedence", () => {
    const compiler = reactHistory({ contextWindowSize: 2 });
    expect(compiler.contextWindowSize).toBe(2);
    expect(idsOf(compiler.compile(given(history, { contextWindowSize: 5 })))).toEqual(
      idsOf([input(turn(2)), answer(turn(2), 2), input(turn(3)), answer(turn(3), 2), ...open]),
    );
  });

  test("text along with calls stays, without the calls", () => {
    const said = { ...(round(turn(1), 1, 1, "I will look.")[0] as Message), reasoning: { signature: "of the call" } };
    const [, result] = round(turn(1), 1) as [Message, Message];
    const [, shown] = reactHistory().compile(given([input(turn(1)), said, result, ...open]));
    expect(shown).toMatchObject({ id: "agent#1:1", content: "I will look." });
    expect(shown).not.toHaveProperty("toolCalls");
    expect(shown).not.toHaveProperty("reasoning");
  });

  test("loaded calls come back as separate rounds right before the open turn, in the order of the requests", () => {
    const loadedCallIds = ["agent#2:1:0", "agent#1:2:0", "agent#2:1:0", "agent#9:1:1", "agent#7:1:0"];
    const compiled = reactHistory({ contextWindowSize: 2 }).compile(given(history, { loadedCallIds }));
    expect(compiled.map(({ role, content }) => `${role} ${textOf(content)}`)).toEqual([
      "assistant answers in agent#3",
      "assistant ",
      "tool result of agent#2:1:0",
      "assistant ",
      "tool result of agent#1:2:0",
      "user asks in agent#9",
      "assistant ",
      "tool result of agent#9:1:0",
      "tool result of agent#9:1:1",
    ]);
    expect(new Set(idsOf(compiled)).size).toBe(compiled.length);
  });

  test("of a round with several calls only the requested one comes back, even from before a compaction", () => {
    const compiled = reactHistory().compile(
      given([summary(turn(1), 9), ...open], { earlier: round(turn(1), 1, 3), loadedCallIds: ["agent#1:1:1"] }),
    );
    expect(compiled.slice(0, 3)).toMatchObject([
      { origin: "compaction" },
      { role: "assistant", toolCalls: [{ callId: "agent#1:1:1" }] },
      { role: "tool", content: "result of agent#1:1:1" },
    ]);
    expect(compiled).toHaveLength(3 + open.length);
  });

  test("in a turn without an input message, loaded calls come last", () => {
    const compiled = reactHistory().compile(given(wholeTurn(1), { loadedCallIds: ["agent#1:1:0"] }));
    expect(compiled.at(-1)).toMatchObject({ role: "tool", content: "result of agent#1:1:0" });
  });

  test("the window is widened up to all messages and no further (row R4)", () => {
    const compiler = reactHistory({ contextWindowSize: 2, expandBy: 3 });
    const sizes: number[] = [];
    let contextWindowSize: number | null = null;
    for (let count = 0; count < 4; count += 1) {
      const window = expandedWindow(compiler, given(history, { contextWindowSize }));
      expect(window?.total).toBe(7);
      contextWindowSize = window?.size ?? 0;
      sizes.push(contextWindowSize);
    }
    expect(sizes).toEqual([5, 7, 7, 7]);
    expect(expandedWindow(compiler, given([input(turn(9))]))).toEqual({ size: 2, total: 1 });
    expect(expandedWindow(fullHistory(), given(history))).toBeUndefined();
  });

  test.each([{ contextWindowSize: 0 }, { expandBy: 0.5 }])("%o is refused", (options) => {
    expect(() => reactHistory(options)).toThrow(/reactHistory\(\): \w+ is .*; expected a whole number of at least 1/);
  });
});

test("only reactHistory adds tools for the model's own context", () => {
  const compilers = [fullHistory(), windowHistory(3), withoutTraces(), reactHistory()];
  expect(compilers.map(({ internalTools }) => internalTools)).toEqual([false, false, false, true]);
  expect(new Set(compilers.map(({ name }) => name)).size).toBe(4);
});

import { describe, expect, test } from "vitest";
import {
  type CompileInput,
  elideResults,
  expandedWindow,
  fullHistory,
  type HistoryCompiler,
  historyNamed,
  isLegal,
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

/** How many messages are visible after each message of a conversation. */
const sizesIn = (window: HistoryCompiler, most: number) =>
  Array.from({ length: most }, (_, index) => {
    const history = Array.from({ length: index + 1 }, (_each, number) => input(turn(number + 1)));
    return window.compile({ ...given(history), turnId: turn(index + 1) }).length;
  });

describe("windowHistory", () => {
  test("grows up to twice its size, and then moves to the newest: in between each prompt continues the one before", () => {
    expect(sizesIn(windowHistory(3), 13)).toEqual([1, 2, 3, 4, 5, 6, 4, 5, 6, 4, 5, 6, 4]);
    expect(sizesIn(windowHistory(3, { upTo: 4 }), 6)).toEqual([1, 2, 3, 4, 4, 4]);
    expect(sizesIn(windowHistory(3, { upTo: 10 }), 12)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 4, 5]);
  });

  test("moves with every message where upTo is its size", () => {
    const history = [...wholeTurn(1), ...wholeTurn(2), ...open];
    expect(sizesIn(windowHistory(3, { upTo: 3 }), 6)).toEqual([1, 2, 3, 3, 3, 3]);
    expect(windowHistory(8, { upTo: 8 }).compile(given(history))).toEqual(history.slice(-8));
    // The sixth newest message is the result of the second turn's call.
    expect(windowHistory(6, { upTo: 6 }).compile(given(history))).toEqual(history.slice(-5));
  });

  test("keeps a call with its results, and at least the newest `size` messages", () => {
    // 13 messages: the window begins at the result of the second turn's call, so the call is visible too.
    const history = [...wholeTurn(1), ...wholeTurn(2), input(turn(9)), ...round(turn(9), 1, 3)];
    expect(history).toHaveLength(13);
    expect(windowHistory(6).compile(given(history))).toEqual(history.slice(5));
  });

  test("shows the whole open turn even if it alone exceeds the size", () => {
    expect(windowHistory(1).compile(given([...wholeTurn(1), ...open]))).toEqual(open);
  });

  test("a summary stays in front and is not counted", () => {
    const history = [summary(turn(2), 1), ...wholeTurn(3), ...open];
    expect(idsOf(windowHistory(3, { upTo: 5 }).compile(given(history)))).toEqual(idsOf([summary(turn(2), 1), ...open]));
    expect(windowHistory(5).compile(given(history))).toEqual(history);
  });

  test("has its numbers in its name, by which a stored definition finds it again", () => {
    const windows = [windowHistory(5), windowHistory(5, { upTo: 7 }), windowHistory(5, { upTo: 5 })];
    expect(windows.map(({ name }) => name)).toEqual([
      "windowHistory(5, 10)",
      "windowHistory(5, 7)",
      "windowHistory(5)",
    ]);
    for (const { name } of windows) expect(historyNamed(name)?.name).toBe(name);
  });

  test.each([0, -1, 1.5, Number.NaN])("a size of %s is refused", (size) => {
    expect(() => windowHistory(size)).toThrow(InvalidInputError);
    expect(() => windowHistory(size)).toThrow(/windowHistory\(\): its size is .*whole number of at least 1/);
  });

  test.each([4, 5.5, Number.NaN, "9", null])("upTo of %s is refused for a size of 5", (upTo) => {
    expect(() => windowHistory(5, { upTo: upTo as number })).toThrow(/windowHistory\(\): upTo is .*at least 5/);
  });
});

const hiddenIn = (messages: readonly Message[]) =>
  messages.flatMap((message) =>
    message.role === "tool" && textOf(message.content).includes("no longer shown") ? message.callId : [],
  );

describe("elideResults", () => {
  const long = "x".repeat(60);
  /** One turn with so many rounds, each with a long and a short result. */
  const working = (rounds: number, turnId = turn(9)): Message[] => [
    input(turnId),
    ...Array.from({ length: rounds }, (_, index) => round(turnId, index + 1, 2)).flatMap((messages) =>
      messages.map((message) =>
        message.role === "tool" && message.callId.endsWith(":0") ? { ...message, content: long } : message,
      ),
    ),
  ];
  const elide = elideResults({ keepRounds: 2, overCharacters: 50 });
  test("replaces long results of old rounds in blocks, so that prompts continue each other in between", () => {
    const counts = Array.from({ length: 9 }, (_, rounds) => hiddenIn(elide.compile(given(working(rounds)))).length);
    expect(counts).toEqual([0, 0, 0, 0, 0, 2, 2, 4, 4]);
    const [fifth, sixth] = [5, 6].map((rounds) => elide.compile(given(working(rounds))));
    expect(sixth?.slice(0, fifth?.length)).toEqual(fifth);
  });

  test("names the length of the result and how to load it, and changes nothing else", () => {
    const history = working(5);
    const compiled = elide.compile(given(history));
    expect(textOf(compiled[2]?.content ?? "")).toBe(
      `[This result of 60 characters is no longer shown. If you need it, load_tool_results loads it again, by its id ${turn(9)}:1:0.]`,
    );
    expect(compiled.map((message, index) => message === history[index])).toEqual(
      history.map((_, index) => index !== 2 && index !== 5),
    );
    // The same object again: counts and digests are kept by object.
    expect(elide.compile(given(history))[2]).toBe(compiled[2]);
  });

  test("a loaded result is shown in its place in the open turn, and before it if it is of an earlier turn", () => {
    const own = elide.compile(given(working(5), { loadedCallIds: [`${turn(9)}:1:0`] }));
    expect(hiddenIn(own)).toEqual([`${turn(9)}:2:0`]);
    expect(textOf(own[2]?.content ?? "")).toBe(long);

    const history = [...working(3, turn(1)), answer(turn(1), 4), ...working(3)];
    const compiled = elide.compile(given(history, { loadedCallIds: [`${turn(1)}:1:0`, `${turn(9)}:3:0`] }));
    expect(hiddenIn(compiled)).toEqual([`${turn(1)}:1:0`, `${turn(1)}:2:0`]);
    const before = working(3, turn(1)).length + 1;
    expect(idsOf(compiled.slice(before, before + 2))).toEqual([
      `loaded:${turn(1)}:1:0`,
      `loaded:${turn(1)}:1:0:result`,
    ]);
    expect(compiled).toHaveLength(history.length + 2);
    expect(isLegal(compiled)).toBeUndefined();
  });

  test("an image is too long at any length", () => {
    const pictured = working(5).map((message): Message => {
      const image = { type: "image", url: "https://example.com/a.png" } as const;
      return message.id === `${turn(9)}:1:1:result` ? { ...message, content: [image] } : message;
    });
    expect(hiddenIn(elide.compile(given(pictured)))).toContain(`${turn(9)}:1:1`);
  });

  test.each([{ keepRounds: 0 }, { overCharacters: 0.5 }, { keepRounds: "3" }])("%o is refused", (options) => {
    expect(() => elideResults(options as object)).toThrow(
      /elideResults\(\): \w+ is .*; expected a whole number of at least 1/,
    );
  });

  test("its name has its numbers", () => {
    expect(elide.name).toBe("elideResults(2, 50)");
    expect(historyNamed(elide.name)?.name).toBe(elide.name);
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

test("only reactHistory and elideResults add tools for the model's own context", () => {
  const compilers = [fullHistory(), windowHistory(3), withoutTraces(), reactHistory(), elideResults()];
  expect(compilers.map(({ internalTools }) => internalTools)).toEqual([false, false, false, true, true]);
  expect(new Set(compilers.map(({ name }) => name)).size).toBe(5);
});

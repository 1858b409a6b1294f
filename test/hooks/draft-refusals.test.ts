import { describe, expect, test } from "vitest";
import { InvalidInputError } from "../../src/errors/index.ts";
import { createDraft } from "../../src/hooks/index.ts";
import { afterLlm, beforeEachTool, beforeLlm, ended, nothing } from "./hook-fixtures.ts";

const late = "this draft was committed when its hook returned and cannot be changed any more";

describe("draft refusals", () => {
  test("a change after the hook has returned is refused, and the outcome stays", () => {
    const llm = beforeLlm();
    const answer = afterLlm();
    const call = beforeEachTool();
    const empty = createDraft("onComplete", {
      messages: [],
      end: ended,
    });
    const outcomes = [llm.outcome(), answer.outcome(), call.outcome(), empty.outcome()];
    const changes = [
      () => llm.draft.add({ role: "user", content: "late" }),
      () => llm.draft.edit("m1", "late"),
      () => llm.draft.remove("m1"),
      () => llm.draft.stop("late"),
      () => llm.draft.set({ temperature: 0 }),
      () => answer.draft.continue(),
      () => answer.draft.deny("a#1:1:0", "late"),
      () => answer.draft.changeArguments("a#1:1:0", {}),
      () => call.draft.changeArguments({}),
      () => call.draft.deny("late"),
      () => call.draft.stop("late"),
      () => empty.draft.add({ role: "user", content: "late" }),
    ];
    for (const change of changes) expect(change).toThrow(new InvalidInputError(late));
    expect([llm.outcome(), answer.outcome(), call.outcome(), empty.outcome()]).toEqual(outcomes);
  });

  test("unknown ids", () => {
    const unknownMessage = 'the draft has no message "m9"; use an id from draft.messages';
    expect(() => beforeLlm().draft.edit("m9", "x")).toThrow(new InvalidInputError(unknownMessage));
    expect(() => beforeLlm().draft.remove("m9")).toThrow(new InvalidInputError(unknownMessage));
    const unknownCall = 'the draft has no call "a#1:1:7"; use an id from draft.calls';
    expect(() => afterLlm().draft.deny("a#1:1:7", "no")).toThrow(new InvalidInputError(unknownCall));
    expect(() => afterLlm().draft.changeArguments("a#1:1:7", {})).toThrow(new InvalidInputError(unknownCall));
  });

  test.each([
    [null, "draft.set() expects its options as an object"],
    [{ temprature: 1 }, "did you mean temperature?"],
    [{ effort: "low" }, "did you mean reasoningEffort?"],
    [{ model: "m" }, "did you mean defineAgent({ model })?"],
    [{ temperature: -1 }, "draft.set().temperature is -1; expected a number of at least 0"],
    [{ maxOutputTokens: 1.5 }, "draft.set().maxOutputTokens is 1.5; expected a whole number of at least 1"],
    [{ stopSequences: [7] }, "draft.set().stopSequences[0] is 7; expected a text of 1 to 1000 characters"],
    [{ reasoningEffort: "huge" }, 'draft.set().reasoningEffort is the text "huge"; expected "none"'],
    [{ toolChoice: { tool: "" } }, 'draft.set().toolChoice is an object; expected "auto", "none", "required" or'],
    [{ toolChoice: { tool: "look" } }, 'draft.set(): toolChoice: there is no tool "look"; the tools are search'],
    [{ providerOptions: { a: [] } }, 'draft.set().providerOptions["a"] is a list; expected an object of JSON values'],
    [{ providerOptions: { a: { b: () => 1 } } }, 'draft.set().providerOptions["a"] cannot be taken'],
  ])("the settings %j", (settings, told) => {
    const { draft, outcome } = beforeLlm();
    draft.set({ temperature: 0.5 });
    expect(() => draft.set(settings as never)).toThrow(InvalidInputError);
    expect(() => draft.set(settings as never)).toThrow(told);
    expect(outcome().patch.settings).toEqual({ temperature: 0.5 });
  });

  test("an edit of a message removed in the same draft", () => {
    const { draft } = beforeLlm();
    draft.remove("m1");
    expect(() => draft.edit("m1", "x")).toThrow('message "m1" was removed in this draft');
  });

  test("messages that would break the conversation", () => {
    const { draft, outcome } = beforeLlm();
    const { add } = draft as { readonly add: (message: object) => void };
    expect(() => add({ role: "tool", content: "x" })).toThrow(
      'a hook cannot add a message with role "tool"; use user, system, assistant',
    );
    expect(() => add({ role: "user", content: 7 })).toThrow("a text, or a list of text and image parts");
    expect(() => add({ role: "user" })).toThrow("a text, or a list of text and image parts");
    expect(outcome().added).toEqual([]);
  });

  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;
  test.each([
    ["a list", []],
    ["a function within", { run: () => 1 }],
    ["a date within", { at: new Date(0) }],
    ["a cycle", cyclic],
    ["NaN", { count: Number.NaN }],
  ])("arguments that are not a JSON object: %s", (_what, args) => {
    const each = beforeEachTool();
    const round = afterLlm();
    expect(() => each.draft.changeArguments(args)).toThrow(InvalidInputError);
    expect(() => round.draft.changeArguments("a#1:1:0", args)).toThrow(InvalidInputError);
    expect(each.outcome()).toEqual({ stop: null });
    expect(round.outcome().patch).toEqual(nothing);
  });

  test("a denial or a stop without a reason", () => {
    expect(() => beforeEachTool().draft.deny(" ")).toThrow("a hook that denies a call must give a non-empty reason");
    expect(() => afterLlm().draft.deny("a#1:1:0", "")).toThrow(
      "a hook that denies a call must give a non-empty reason",
    );
    expect(() => afterLlm().draft.stop("")).toThrow("a hook that stops a turn must give a non-empty reason");
  });

  test("assignments to a draft throw", () => {
    const { draft } = afterLlm();
    expect(() => Object.assign(draft, { messages: [] })).toThrow(TypeError);
  });
});

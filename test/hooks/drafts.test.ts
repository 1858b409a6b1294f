import { describe, expect, expectTypeOf, test } from "vitest";
import { createDraft, type HookDrafts } from "../../src/hooks/index.ts";
import { type HookName, hookPatchSchema } from "../../src/state/index.ts";
import { afterLlm, beforeEachTool, beforeLlm, calls, callResult, ended, nothing, response } from "./hook-fixtures.ts";

/** A draft of every hook, with data. */
const every = {
  afterUserInput: createDraft("afterUserInput", { messages: [], input: "go" }),
  beforeLlm: createDraft("beforeLlm", { messages: [], settings: {}, tools: [] }),
  afterLlm: createDraft("afterLlm", { messages: [], response, calls }),
  beforeTools: createDraft("beforeTools", { messages: [], calls }),
  beforeEachTool: beforeEachTool(),
  afterEachTool: createDraft("afterEachTool", callResult()),
  onError: createDraft("onError", callResult()),
  afterTools: createDraft("afterTools", { messages: [], results: [] }),
  onComplete: createDraft("onComplete", {
    messages: [],
    end: ended,
  }),
};

describe("H2: the methods of a draft", () => {
  test("the type has add only where a message may enter", () => {
    expectTypeOf<HookDrafts["afterUserInput"]>().toHaveProperty("add");
    expectTypeOf<HookDrafts["beforeLlm"]>().toHaveProperty("add");
    expectTypeOf<HookDrafts["afterLlm"]>().toHaveProperty("add");
    expectTypeOf<HookDrafts["beforeTools"]>().toHaveProperty("add");
    expectTypeOf<HookDrafts["beforeEachTool"]>().not.toHaveProperty("add");
    expectTypeOf<HookDrafts["afterEachTool"]>().not.toHaveProperty("add");
    expectTypeOf<HookDrafts["onError"]>().not.toHaveProperty("add");
    expectTypeOf<HookDrafts["afterTools"]>().toHaveProperty("add");
    expectTypeOf<HookDrafts["onComplete"]>().toHaveProperty("add");
  });

  test("the type has edits, calls and continuation only where they apply", () => {
    expectTypeOf<Extract<keyof HookDrafts["beforeLlm"], string>>().toEqualTypeOf<
      "messages" | "settings" | "tools" | "add" | "edit" | "remove" | "rewrite" | "set" | "stop"
    >();
    expectTypeOf<keyof HookDrafts["beforeTools"]>().toEqualTypeOf<
      "messages" | "calls" | "add" | "changeArguments" | "deny" | "stop"
    >();
    expectTypeOf<keyof HookDrafts["afterLlm"]>().toEqualTypeOf<
      "messages" | "calls" | "response" | "add" | "changeArguments" | "deny" | "stop" | "continue"
    >();
    expectTypeOf<keyof HookDrafts["beforeEachTool"]>().toEqualTypeOf<"call" | "changeArguments" | "deny" | "stop">();
    expectTypeOf<keyof HookDrafts["afterEachTool"]>().toEqualTypeOf<"call" | "result" | "stop">();
    expectTypeOf<keyof HookDrafts["onComplete"]>().toEqualTypeOf<"messages" | "end" | "add">();
  });

  const offered: Readonly<Record<HookName, readonly string[]>> = {
    afterUserInput: ["add", "input", "messages", "rewrite", "stop"],
    beforeLlm: ["add", "edit", "messages", "remove", "rewrite", "set", "settings", "stop", "tools"],
    afterLlm: ["add", "calls", "changeArguments", "continue", "deny", "messages", "response", "stop"],
    beforeTools: ["add", "calls", "changeArguments", "deny", "messages", "stop"],
    beforeEachTool: ["call", "changeArguments", "deny", "stop"],
    afterEachTool: ["call", "result", "stop"],
    onError: ["call", "result", "stop"],
    afterTools: ["add", "continue", "messages", "results", "stop"],
    onComplete: ["add", "end", "messages"],
  };
  test.each(Object.entries(offered))("%s has the members of its type and no others at run time", (name, keys) => {
    expect(Object.keys(every[name as HookName].draft).sort()).toEqual(keys);
  });
});

describe("the outcome of a draft", () => {
  test.each(["afterUserInput", "beforeLlm", "afterLlm", "beforeTools", "afterTools", "onComplete"] as const)(
    "%s adds messages in order",
    (name) => {
      const made = {
        afterUserInput: () => createDraft("afterUserInput", { messages: [], input: "go" }),
        beforeLlm,
        afterLlm,
        beforeTools: () => createDraft("beforeTools", { messages: [], calls }),
        afterTools: () => createDraft("afterTools", { messages: [], results: [callResult()] }),
        onComplete: () => createDraft("onComplete", { messages: [], end: ended }),
      };
      const { draft, outcome } = made[name]();
      draft.add({ role: "system", content: "one" });
      draft.add({ role: "user", content: [{ type: "image", url: "https://example.com/a.png" }] });
      expect(outcome()).toEqual({
        added: [
          { role: "system", content: "one" },
          { role: "user", content: [{ type: "image", url: "https://example.com/a.png" }] },
        ],
        patch: nothing,
      });
    },
  );

  test("a patch without changes is empty, and every patch matches the journal's schema", () => {
    const { outcome } = createDraft("beforeLlm", { messages: [], settings: {}, tools: [] });
    expect(outcome()).toEqual({ added: [], patch: nothing });
    const changed = afterLlm();
    changed.draft.deny("a#1:1:1", "no");
    changed.draft.continue();
    const { patch } = changed.outcome();
    expect(hookPatchSchema.parse({ ...patch, addedMessageIds: [] })).toEqual({ ...patch, addedMessageIds: [] });
  });

  test("beforeLlm: edits and removals by id; the last edit counts, and a removal cancels it", () => {
    const { draft, outcome } = beforeLlm();
    draft.edit("m1", "first try");
    draft.edit("m1", "second try");
    draft.edit("m2", "in vain");
    draft.remove("m2");
    draft.remove("m2");
    expect(outcome().patch).toEqual({
      ...nothing,
      edited: [{ messageId: "m1", content: "second try" }],
      removedMessageIds: ["m2"],
    });
  });

  test("afterLlm and beforeTools change arguments and deny calls, by id", () => {
    for (const made of [afterLlm(), createDraft("beforeTools", { messages: [], calls })]) {
      made.draft.changeArguments("a#1:1:0", { query: "y", deep: { list: [1, null] } });
      made.draft.deny("a#1:1:1", "nothing is deleted on Sundays");
      expect(made.outcome().patch.calls).toEqual([
        { callId: "a#1:1:0", arguments: '{"deep":{"list":[1,null]},"query":"y"}' },
        { callId: "a#1:1:1", denied: "nothing is deleted on Sundays" },
      ]);
    }
  });

  test("beforeEachTool: changed arguments, denial and stop", () => {
    expect(beforeEachTool().outcome()).toEqual({ stop: null });
    const { draft, outcome } = beforeEachTool();
    const args = { query: "y" };
    draft.changeArguments(args);
    args.query = "changed afterwards";
    draft.deny("not today");
    draft.stop("and no more");
    expect(outcome()).toEqual({
      arguments: { query: "y" },
      denied: "not today",
      stop: { reason: "stop_requested", message: "and no more" },
    });
  });

  test("the first reason to stop counts", () => {
    const { draft, outcome } = createDraft("onError", callResult());
    draft.stop("first");
    draft.stop("second");
    expect(outcome()).toEqual({
      added: [],
      patch: { ...nothing, stop: { reason: "stop_requested", message: "first" } },
    });
  });

  test("continue() requests another step", () => {
    const { draft, outcome } = createDraft("afterTools", { messages: [], results: [] });
    draft.continue();
    expect(outcome().patch).toEqual({ ...nothing, continueRequested: true });
  });

  test("added messages are copied", () => {
    const { draft, outcome } = beforeLlm();
    const content = [{ type: "text" as const, text: "as it was" }];
    draft.add({ role: "user", content });
    content[0] = { type: "text", text: "changed afterwards" };
    expect(outcome().added).toEqual([{ role: "user", content: [{ type: "text", text: "as it was" }] }]);
  });
});

import { describe, expect, test, vi } from "vitest";
import { InvalidInputError } from "../../src/errors/index.ts";
import {
  approval,
  type CheckedCall,
  contextWarning,
  createDraft,
  type HookContext,
  noProgressGuard,
  type Plugin,
  reflection,
  toolLogging,
  trust,
} from "../../src/hooks/index.ts";
import { type Message, type TraceEntry, textOf } from "../../src/state/index.ts";
import { callResult, failedCall, fakeRun, llmCall, message, nothing, runPlugin, toolCall } from "./hook-fixtures.ts";

const call: CheckedCall = { callId: "desk-1#1:1:0", name: "search", arguments: { query: "x" } };
const afterRound = (results = [callResult()]) => createDraft("afterTools", { messages: [], results });

describe("reflection", () => {
  test("calls the model about the round and adds its answer", async () => {
    const { run, requests } = fakeRun({}, "x was found");
    const results = [callResult(), callResult({ outcome: "error", text: "it\nbroke" })];
    const { added, patch } = await runPlugin(reflection(), "afterTools", afterRound(results), run);
    expect(added).toEqual([{ role: "user", content: "Reflection on the last tool calls: x was found" }]);
    expect(patch).toMatchObject({ stop: null, continueRequested: false });
    expect(requests).toHaveLength(1);
    const asked = requests[0]?.messages[0]?.content;
    expect(asked).toContain("Task: find x");
    expect(asked).toContain('search {"query":"x"} (success): found it\nsearch {"query":"x"} (error): it broke');
  });

  test.each([
    { step: 1, asked: 0 },
    { step: 2, asked: 1 },
    { step: 3, asked: 0 },
    { step: 4, asked: 1 },
  ])("every: 2 asks $asked times at step $step; an empty answer adds nothing", async ({ step, asked }) => {
    const { run, requests } = fakeRun({ step }, " ");
    expect((await runPlugin(reflection({ every: 2 }), "afterTools", afterRound(), run)).added).toEqual([]);
    expect(requests).toHaveLength(asked);
  });

  test("uses its own prompt", async () => {
    const { run, requests } = fakeRun();
    await runPlugin(reflection({ prompt: "So what?" }), "afterTools", afterRound(), run);
    expect(requests[0]?.messages[0]?.content).toMatch(/^So what\?\n/);
  });

  test("sends the model only an excerpt of a large result", async () => {
    const { run, requests } = fakeRun();
    await runPlugin(reflection(), "afterTools", afterRound([callResult({ text: "a".repeat(5_000_000) })]), run);
    expect(textOf(requests[0]?.messages[0]?.content ?? "").length).toBeLessThan(3_000);
  });
});

const decided = (decide: (call: CheckedCall, run: HookContext) => unknown) =>
  runPlugin(
    approval({ decide: decide as () => boolean }),
    "beforeEachTool",
    createDraft("beforeEachTool", { call }),
    fakeRun({ actorId: "mia" }).run,
  );

describe("approval", () => {
  test("only `true` allows a call, and a text is the reason of the denial", async () => {
    expect(await decided(() => true)).toEqual({ stop: null });
    expect(await decided(async () => true)).toEqual({ stop: null });
    expect(await decided(async () => "only on weekdays")).toEqual({ denied: "only on weekdays", stop: null });
    for (const verdict of [false, "", undefined, 1, "  "]) {
      expect(await decided(() => verdict)).toEqual({ denied: "This call is not permitted.", stop: null });
    }
  });

  test("decides by the call and by the actor", async () => {
    const seen: unknown[] = [];
    await decided((one, { actorId }) => seen.push(one.name, one.arguments, actorId) > 0);
    expect(seen).toEqual(["search", { query: "x" }, "mia"]);
  });
});

describe("toolLogging", () => {
  test("writes a line for the start, the failure and the end of a call", async () => {
    const lines: string[] = [];
    const plugin = toolLogging({ write: (line) => lines.push(line) });
    const { run } = fakeRun();
    await runPlugin(plugin, "beforeEachTool", createDraft("beforeEachTool", { call }), run);
    await runPlugin(plugin, "onError", createDraft("onError", failedCall("no\r\nnetwork\u001b[31m")), run);
    await runPlugin(plugin, "afterEachTool", createDraft("afterEachTool", callResult()), run);
    expect(lines).toEqual([
      'START search {"query":"x"} [desk-1#1:1:0]',
      "ERROR search no network [31m [a#1:1:0]",
      "END search success in 12 ms [a#1:1:0]",
    ]);
  });

  test("lines stay short and contain no result", async () => {
    const lines: string[] = [];
    const plugin = toolLogging({ write: (line) => lines.push(line) });
    const large = { ...call, arguments: { query: "q".repeat(100_000) } };
    await runPlugin(plugin, "beforeEachTool", createDraft("beforeEachTool", { call: large }), fakeRun().run);
    const result = callResult({ text: "the result" });
    await runPlugin(plugin, "afterEachTool", createDraft("afterEachTool", result), fakeRun().run);
    expect(lines[0]?.length).toBeLessThan(300);
    expect(lines.join("\n")).not.toContain("the result");
  });
});

describe("contextWarning", () => {
  test("warns once per turn when the window is filled to that level", async () => {
    const warn = vi.fn<(message: string, run: HookContext) => void>();
    const plugin = contextWarning({ warn });
    const { run, warnings } = fakeRun();
    for (const contextPercent of [null, 79.9, 80.4, 90]) {
      const step = createDraft("beforeLlm", { messages: [message("m1")], settings: {}, tools: [] });
      const outcome = await runPlugin(plugin, "beforeLlm", step, { ...run, contextPercent });
      expect(outcome).toEqual({ added: [], patch: nothing });
    }
    const text = "the context window is 80 % full (warned at 80 %)";
    expect(warnings).toEqual([{ code: "context_percent", message: text }]);
    expect(warn.mock.calls.map(([message]) => message)).toEqual([text]);
  });

  test.each([
    { contextPercent: 94.9, count: 0 },
    { contextPercent: 95, count: 1 },
  ])("atPercent: 95 warns $count times at $contextPercent %", async ({ contextPercent, count }) => {
    const { run, warnings } = fakeRun({ contextPercent });
    await runPlugin(
      contextWarning({ atPercent: 95 }),
      "beforeLlm",
      createDraft("beforeLlm", { messages: [], settings: {}, tools: [] }),
      run,
    );
    expect(warnings).toHaveLength(count);
  });
});

const guarded = async (trace: readonly TraceEntry[], plugin = noProgressGuard()) => {
  const { patch } = await runPlugin(plugin, "afterTools", afterRound(), fakeRun({ trace, step: trace.length }).run);
  return patch.stop?.message ?? null;
};

const rounds = (...texts: readonly string[]) =>
  texts.map((text, index) => toolCall(index + 1, "search", text[0] ?? "", text));

describe("noProgressGuard", () => {
  test("stops when the same call returned the same result three times in a row", async () => {
    expect(await guarded(rounds("a", "a"))).toBeNull();
    expect(await guarded(rounds("b", "a", "a", "a"))).toBe(
      "no progress: the same calls (last search) gave the same results 3 times in a row",
    );
    expect(await guarded(rounds("a", "a"), noProgressGuard({ repeats: 2 }))).toContain("2 times in a row");
  });

  test("detects cycles of several rounds", async () => {
    expect(await guarded(rounds("a", "b", "a", "b", "a"))).toBeNull();
    expect(await guarded(rounds("a", "b", "a", "b", "a", "b"))).toContain("no progress");
  });

  test("other arguments, another result or an additional call count as progress", async () => {
    expect(await guarded(rounds("a1", "a2", "a3"))).toBeNull();
    expect(await guarded(rounds("a", "b", "c"))).toBeNull();
    expect(await guarded(rounds("a", "a", "b", "a"))).toBeNull();
    const beside = [1, 2, 3].map((step) => toolCall(step, "note", "x", `note ${step}`));
    expect(await guarded([...rounds("a", "a", "a"), ...beside])).toBeNull();
  });

  test("the order in which the calls of a round end makes no difference", async () => {
    const both = [1, 2, 3].map((step) => [toolCall(step, "a", "", "1"), toolCall(step, "b", "", "2")]);
    expect(await guarded(both.flatMap((round, index) => (index === 1 ? round.toReversed() : round)))).toContain(
      "no progress",
    );
  });

  test("a turn without calls in its trace continues", async () => {
    expect(await guarded([llmCall(1, 10), llmCall(2, 10), llmCall(3, 10)])).toBeNull();
  });
});

const stopFor = async (plugin: Plugin, actorId: string | null) => {
  const draft = createDraft("afterUserInput", { messages: [], input: "hello" });
  const { patch } = await runPlugin(plugin, "afterUserInput", draft, fakeRun({ actorId }).run);
  return patch.stop;
};

const input = (turn: number, origin: string): Message => ({ ...message(`desk-1#${turn}:in`), origin });

describe("trust", () => {
  test("a list of actors denies other actors and callers without a name", async () => {
    const plugin = trust({ allow: ["mia"] });
    expect(await stopFor(plugin, "mia")).toBeNull();
    expect(await stopFor(plugin, "bob")).toEqual({
      reason: "stop_requested",
      message: 'actor "bob" is not trusted by agent "desk-1"',
    });
    expect((await stopFor(plugin, null))?.message).toBe('a turn without an actor is not trusted by agent "desk-1"');
    expect(await stopFor(trust({ allow: [] }), "mia")).not.toBeNull();
  });

  test("a function: only `true` means trust", async () => {
    const allow = vi.fn<(actorId: string | null, agentId: string) => Promise<boolean>>(async (id) => id === "mia");
    expect(await stopFor(trust({ allow }), "mia")).toBeNull();
    expect(await stopFor(trust({ allow }), null)).not.toBeNull();
    expect(allow.mock.calls).toEqual([
      ["mia", "desk-1"],
      [null, "desk-1"],
    ]);
    const vague = (() => "yes") as unknown as () => boolean;
    expect(await stopFor(trust({ allow: vague }), "mia")).not.toBeNull();
  });

  test("messages of other actors in earlier turns are hidden from the model", async () => {
    const messages = [
      input(1, "mia"),
      input(2, "bob"),
      input(3, "user"),
      { ...message("desk-1#3:1:beforeLlm:0:0"), origin: "hook:memo" },
      input(4, "bob"),
      input(5, "mia"),
    ];
    const removedBy = async (plugin: Plugin, turnId: string) => {
      const { run } = fakeRun({ turnId, actorId: "mia" });
      return (
        await runPlugin(plugin, "beforeLlm", createDraft("beforeLlm", { messages, settings: {}, tools: [] }), run)
      ).patch.removedMessageIds;
    };
    expect(await removedBy(trust({ allow: ["mia"] }), "desk-1#5")).toEqual([
      "desk-1#2:in",
      "desk-1#4:in",
      "desk-1#3:in",
    ]);
    const asked = vi.fn<(actorId: string | null, agentId: string) => boolean>((actorId) => actorId === null);
    expect(await removedBy(trust({ allow: asked }), "desk-1#5")).toEqual(["desk-1#1:in", "desk-1#2:in", "desk-1#4:in"]);
    expect(asked.mock.calls.map(([actorId]) => actorId)).toEqual(["mia", "bob", null]);
  });
});

test("invalid options are refused by name", () => {
  const wrong: readonly (readonly [() => Plugin, string])[] = [
    [() => reflection({ every: 0 }), "reflection(): every is 0; expected a whole number of at least 1"],
    [() => noProgressGuard({ repeats: 1 }), "noProgressGuard(): repeats is 1; expected a whole number of at least 2"],
    [
      () => contextWarning({ atPercent: 0 }),
      "contextWarning(): atPercent is 0; expected a number above 0 and at most 100",
    ],
    [
      () => contextWarning({ atPercent: 101 }),
      "contextWarning(): atPercent is 101; expected a number above 0 and at most 100",
    ],
    [() => approval({ decide: true as never }), "approval(): decide is true; expected a function"],
    [() => toolLogging({ write: undefined as never }), "toolLogging(): write is undefined; expected a function"],
    [
      () => trust({ allow: "mia" as never }),
      'trust(): allow is the text "mia"; expected a list of actor ids, or a function',
    ],
  ];
  for (const [make, text] of wrong) expect(make).toThrow(new InvalidInputError(text));
});

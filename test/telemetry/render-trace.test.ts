import { expect, it } from "vitest";
import type { TraceEntry } from "../../src/state/index.ts";
import { createRedactor, renderTrace } from "../../src/telemetry/index.ts";

const usage = { inputTokens: 100, outputTokens: 20 };
const common = { turnId: "desk#1", at: 0 };
const entries: TraceEntry[] = [
  { ...common, type: "user_input", step: 0, turn: 1, prompt: "Find it,\nplease" },
  {
    ...common,
    type: "llm_call",
    step: 1,
    model: "gpt-5",
    durationMs: 1234,
    toolCallsCount: 2,
    usage: { ...usage, costMicros: 420 },
  },
  {
    ...common,
    type: "tool_execution",
    step: 1,
    callId: "a",
    name: "search",
    arguments: { query: "it", token: "x" },
    status: "success",
    result: "found hunter22",
    durationMs: 45,
  },
  {
    ...common,
    type: "tool_execution",
    step: 1,
    callId: "b",
    name: "serch",
    arguments: "{",
    status: "not_found",
    error: "no such tool",
    errorType: "not_found",
    durationMs: 0,
  },
  {
    ...common,
    type: "tool_execution",
    step: 1,
    callId: "c",
    name: "pay",
    arguments: {},
    status: "error",
    error: "no",
    errorType: "TypeError",
    durationMs: 3,
  },
  {
    ...common,
    type: "llm_call",
    step: 2,
    model: "gpt-5",
    durationMs: 1000,
    toolCallsCount: 0,
    usage: { ...usage, cachedInputTokens: 80, costMicros: 0 },
  },
];
const redactor = createRedactor({ secrets: ["hunter22"], environment: {} });

it("renders a trace as a table with sums", () => {
  expect(`\n${renderTrace(entries, { redactor })}\n`).toMatchInlineSnapshot(`
    "
    step  what   name    status              time  tokens      cost  content
       0  user   turn 1                                              Find it, please
       1  model  gpt-5                      1.2 s     120  $0.00042  2 tool calls
       1  tool   search  success            45 ms                    {"query":"it","token":"[redacted]"} → found [redacted]
       1  tool   serch   not_found           0 ms                    "{" → no such tool
       1  tool   pay     error (TypeError)   3 ms                    {} → no
       2  model  gpt-5                      1.0 s     120        $0  80 of 100 input tokens cached
          total                             2.2 s     240  $0.00042
    "
  `);
});

it("leaves contents out if requested", () => {
  const shown = renderTrace(entries, { redactor, content: false });
  expect(shown).toContain("search");
  expect(shown).not.toMatch(/please|query|found \[|content/);
});

it("adds nothing to an unknown cost", () => {
  const unpriced = entries.map((entry) =>
    entry.type === "llm_call" && entry.step === 2 ? { ...entry, usage: { ...usage, costMicros: null } } : entry,
  );
  expect(renderTrace(unpriced).split("\n").at(-1)).toMatch(/total .* 240 {2}unknown cost$/);
  expect(renderTrace([]).split("\n")).toHaveLength(2);
});

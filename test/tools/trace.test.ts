import { expect, test } from "vitest";
import { effectClassSchema, type TraceEntry, traceEntrySchema } from "../../src/state/index.ts";

const place = { turnId: "t-1", step: 1, at: 1_700_000_000_000 };
const entries: readonly TraceEntry[] = [
  { type: "user_input", ...place, step: 0, turn: 1, prompt: "hello" },
  {
    type: "llm_call",
    ...place,
    model: "offline",
    durationMs: 12.5,
    toolCallsCount: 1,
    usage: { inputTokens: 10, outputTokens: 2, costMicros: 150 },
  },
  {
    type: "tool_execution",
    ...place,
    callId: "t-1:1:0",
    name: "search",
    arguments: { query: "x" },
    status: "error",
    error: "Connection timeout",
    errorType: "TimeoutError",
    durationMs: 45.2,
  },
];

test.each(entries)("a $type entry survives a JSON round trip (H5)", (entry) => {
  expect(traceEntrySchema.parse(JSON.parse(JSON.stringify(entry)))).toEqual(entry);
});

test("an unknown price is null, never omitted and never a fraction", () => {
  const [, call] = entries;
  const withCost = (costMicros: unknown) =>
    traceEntrySchema.safeParse({ ...call, usage: { inputTokens: 1, outputTokens: 1, costMicros } }).success;
  expect([withCost(null), withCost(0), withCost(undefined), withCost(0.5)]).toEqual([true, true, false, false]);
});

test("a tool has three effect classes and three outcomes", () => {
  expect(effectClassSchema.options).toEqual(["none", "keyed", "once"]);
  const [, , tool] = entries;
  const statuses = ["success", "error", "not_found", "denied"];
  expect(statuses.map((status) => traceEntrySchema.safeParse({ ...tool, status }).success)).toEqual([
    true,
    true,
    true,
    false,
  ]);
});

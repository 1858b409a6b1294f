import { describe, expect, test } from "vitest";
import { plainLine } from "../../../src/cli/view/plain-line.ts";
import type { TroupeEvent } from "../../../src/state/index.ts";
import {
  completedSample,
  decidedSample,
  deltaSample,
  eventSample,
  failedSample,
  openedSample,
  stoppedSample,
} from "../support/samples.ts";

const usage = { inputTokens: 1_100, outputTokens: 100 };
const error = { code: "model_error", message: "503\nbusy", retryable: true };

const cases: readonly (readonly [TroupeEvent, string])[] = [
  [eventSample({ type: "turn.started", number: 1, prompt: "What\nis it?" }), "begins “What is it?”"],
  [
    eventSample({ type: "model.responded", model: "m", usage, costMicros: 0, toolCalls: 1, durationMs: 9, step: 2 }),
    "step 2: 1.2k tokens, 1 tool call",
  ],
  [
    eventSample({ type: "step.restarted", attempt: 2, error, retryAt: 9, step: 2 }),
    "tries step 2 again (attempt 2): 503 busy",
  ],
  [eventSample({ type: "tool.completed", callId: "c", name: "read_file", durationMs: 12 }), "read_file took 12 ms"],
  [
    eventSample({ type: "tool.failed", callId: "c", name: "read_file", outcome: "denied", durationMs: 1, error: null }),
    "read_file failed (denied)",
  ],
  [
    eventSample({
      type: "subagent.spawned",
      callId: "ask-mibodu#1:1:0",
      childId: "ask-mibodu~3fa9c1d2",
      definition: "reader",
      mode: "await",
    }),
    "asks reader ~3fa9c1",
  ],
  [
    eventSample({
      type: "budget.warning",
      accountId: "turn:x",
      limit: "maxTokens",
      used: 81,
      max: 100,
      message: "lead, this turn: 81 of 100 tokens (81 %)",
    }),
    "budget nearly used up: lead, this turn: 81 of 100 tokens (81 %)",
  ],
  [eventSample({ type: "lifecycle.changed", status: "paused" }), "paused"],
  [openedSample(), 'asks for approval: “pay({"to":"Ann"})” (ask-mibodu#1:1:0:1)'],
  [openedSample({ kind: "question", prompt: "Which\nday?" }), "asks: “Which day?” (ask-mibodu#1:1:0:1)"],
  [decidedSample(), "pay was approved by anna"],
  [decidedSample({ verdict: "rejected", reason: "too\nmuch" }), "pay was rejected by anna: too much"],
  [decidedSample({ verdict: "expired", by: null }), "pay: no decision in time"],
  [eventSample({ type: "turn.waiting", reason: "request" }), "waits for a decision or an answer"],
  [
    eventSample({ type: "context.compacted", strategy: "summarize", messages: 12, hasSummary: true }),
    "compacts its context: 12 messages summarised (summarize)",
  ],
  [completedSample(), "done after 3 steps"],
  [stoppedSample(), "stopped (token_limit): lead, this turn: 50,000 of 50,000 tokens"],
  [failedSample(), "failed: no route (model_error)"],
];

describe("an event as a line", () => {
  test.each(cases.map(([event, text]) => ({ type: event.type, event, text })))("$type: $text", ({ event, text }) => {
    expect(plainLine({ ...event, at: 2_500 }, 1_000)).toBe(`   1.5 s  lead ask-mibodu: ${text}`);
  });

  test("an event of a subagent names it", () => {
    const event = eventSample({
      type: "lifecycle.changed",
      status: "paused",
      agentId: "a~0123456789",
      agentName: "reader",
    });
    expect(plainLine(event, 1_000)).toBe("    0 ms  reader ~012345: paused");
  });

  test.each([
    deltaSample("x"),
    eventSample({ type: "lifecycle.changed", status: "busy" }),
    eventSample({ type: "step.completed" }),
  ])("$type prints no line", (event) => {
    expect(plainLine(event, 0)).toBeUndefined();
  });
});

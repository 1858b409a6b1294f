import { describe, expect, it, test } from "vitest";
import { createRedactor } from "../../src/base/index.ts";
import type { TroupeEventBody } from "../../src/state/index.ts";
import { EventNarrator, eventText } from "../../src/telemetry/event-narrator.ts";
import { costText, durationText, oneLine } from "../../src/telemetry/plain-text.ts";
import { end, failure, leadAndReader, start, teller } from "./hand-made.ts";

const call = { callId: "desk#1:1:0", name: "search" };
const limit = { accountId: "desk#1", limit: "maxTokens" } as const;

describe("the text of an event", () => {
  const desk = teller({ at: start, row: 0 }, { agentId: "desk" });
  const lines: [TroupeEventBody, string | undefined][] = [
    [{ type: "turn.started", number: 3, prompt: "secret plan" }, "turn 3 began"],
    [{ type: "step.started", model: "gpt-5" }, undefined],
    [
      {
        type: "model.responded",
        model: "gpt-5",
        usage: { inputTokens: 400, outputTokens: 50 },
        costMicros: 4200,
        toolCalls: 2,
        durationMs: 1234,
      },
      "step 2: gpt-5 answered in 1.2 s: 450 tokens (400 in, 50 out), $0.0042, 2 tool calls",
    ],
    [
      {
        type: "model.responded",
        model: "gpt-5",
        usage: { inputTokens: 400, cachedInputTokens: 300, outputTokens: 50 },
        costMicros: 0,
        toolCalls: 0,
        durationMs: 1,
      },
      "step 2: gpt-5 answered in 1 ms: 450 tokens (400 in with 300 cached, 50 out), $0, 0 tool calls",
    ],
    [
      { type: "step.restarted", attempt: 2, error: failure, retryAt: start },
      "step 2: tries again (attempt 2) after model_error: the model is away",
    ],
    [{ type: "tool.started", ...call, attempt: 2 }, "step 2: search started (attempt 2)"],
    [{ type: "tool.completed", ...call, durationMs: 45 }, "step 2: search took 45 ms"],
    [
      { type: "tool.failed", ...call, outcome: "denied", durationMs: 0, error: { ...failure, message: "not\n today" } },
      "step 2: search failed after 0 ms (denied): not today",
    ],
    [
      {
        type: "request.opened",
        ...call,
        requestId: "desk#1:1:0:1",
        kind: "approval",
        prompt: "May I?",
        expiresAt: null,
      },
      "asks for approval (search), request desk#1:1:0:1",
    ],
    [
      {
        type: "request.decided",
        ...call,
        requestId: "desk#1:1:0:1",
        kind: "approval",
        verdict: "rejected",
        by: "ann",
        reason: null,
      },
      "request desk#1:1:0:1 was rejected by ann",
    ],
    [
      { type: "budget.warning", ...limit, used: 80, max: 100, message: "lead, this turn: 80 of 100 tokens (80 %)" },
      "budget nearly used up: lead, this turn: 80 of 100 tokens (80 %)",
    ],
    [
      { type: "budget.exhausted", ...limit, message: "lead, this turn: 100 of 100 tokens" },
      "budget used up: lead, this turn: 100 of 100 tokens",
    ],
    [{ type: "turn.waiting", reason: "budget" }, "waits: others have reserved the budget"],
    [{ type: "text.delta", text: "hello", offset: 0, attempt: 1, after: null }, undefined],
    [{ type: "lifecycle.changed", status: "paused" }, "paused"],
    [{ type: "lifecycle.changed", status: "busy" }, undefined],
    [
      { type: "turn.failed", ...end, costMicros: null, error: failure },
      "turn failed, 2 steps, 1 tool call, 42 tokens (30 in, 12 out), unknown cost, model_error: the model is away",
    ],
    [
      { type: "turn.stopped", ...end, stopReason: "steps_limit", message: "maxSteps (2) is reached" },
      "turn stopped, 2 steps, 1 tool call, 42 tokens (30 in, 12 out), $0.00042, maxSteps (2) is reached",
    ],
  ];
  test.each(lines)("%j", (body, line) => {
    const isOfStep = body.type.startsWith("tool.") || body.type.startsWith("step.") || body.type === "model.responded";
    expect(eventText(desk.tell(body, isOfStep ? 2 : null))).toBe(line);
  });

  it("contains prompts and answers only if requested", () => {
    const event = desk.tell({ type: "turn.started", number: 1, prompt: "Tell me\nall" });
    expect(eventText(event, { content: true })).toBe("turn 1 began: “Tell me all”");
    const progress = desk.tell({ type: "tool.progress", ...call, attempt: 1, after: null, update: { done: 3 } }, 1);
    expect([eventText(progress), eventText(progress, { content: true })]).toEqual([
      undefined,
      'step 1: search reports {"done":3}',
    ]);
  });
});

describe("a narration", () => {
  it("names each agent by its path and includes the duration of turns", () => {
    const narrator = new EventNarrator(createRedactor({ environment: {} }), false);
    const told = leadAndReader().flatMap((event) => narrator.tell(event)?.text ?? []);
    expect(told).toMatchInlineSnapshot(`
      [
        "lead@desk  turn 1 began",
        "lead@desk  step 1: gpt-5-2026 answered in 100 ms: 42 tokens (30 in, 12 out), $0.00042, 1 tool call",
        "lead@desk  spawned reader desk~1234abcd",
        "lead@desk/reader~1234  turn 1 began",
        "lead@desk/reader~1234  step 1: tries again (attempt 2) after model_error: the model is away",
        "lead@desk/reader~1234  step 1: gpt-5-mini answered in 100 ms: 42 tokens (30 in, 12 out), $0.00042, 1 tool call",
        "lead@desk/reader~1234  step 1: fetch_page started",
        "lead@desk/reader~1234  step 1: fetch_page failed after 20 ms (error): the model is away",
        "lead@desk/reader~1234  turn completed in 186 ms, 2 steps, 1 tool call, 42 tokens (30 in, 12 out), unknown cost",
        "lead@desk  subagent desk~1234abcd completed (completed)",
        "lead@desk  step 1: reader took 190 ms",
        "lead@desk  turn completed in 300 ms, 2 steps, 1 tool call, 42 tokens (30 in, 12 out), $0.00042",
      ]
    `);
  });

  it("omits the unknown parents of agents whose start it did not see", () => {
    const narrator = new EventNarrator(createRedactor({ environment: {} }), false);
    const [, , , , started] = leadAndReader();
    expect(started && narrator.tell(started)?.text).toBe("…/reader~1234  turn 1 began");
  });

  it("redacts names, texts and ids", () => {
    const redactor = createRedactor({ secrets: ["desk", "plan"], environment: {} });
    const narrator = new EventNarrator(redactor, true);
    const event = teller({ at: start, row: 0 }, { agentId: "desk", agentName: "plan-maker" });
    expect(narrator.tell(event.tell({ type: "turn.started", number: 1, prompt: "the plan" }))?.text).toBe(
      "[redacted]-maker@[redacted]  turn 1 began: “the [redacted]”",
    );
  });
});

describe("plain text", () => {
  test.each([
    ["\u001b[31mred\u001b[0m\u0007", "red"],
    [" two\r\n\tlines\u2028 ", "two lines"],
    ["a\u202Eb\u200Bc", "abc"],
    ["0123456789abc", "012345678…"],
    ["01234567\u{1F600}9", "01234567…"],
  ])("%j is printed as %j", (given, shown) => {
    expect(oneLine(given, 10)).toBe(shown);
  });

  test("durations and costs have readable units", () => {
    expect([0.4, 999, 1_000, 59_949, 59_950, 3_599_000, 3_600_000, -1].map(durationText)).toEqual([
      "0 ms",
      "999 ms",
      "1.0 s",
      "59.9 s",
      "1 m 00 s",
      "59 m 59 s",
      "1 h 00 m",
      "0 ms",
    ]);
    expect([null, 0, 1, 420, 4_200, 100_000, 1_250_000].map(costText)).toEqual([
      "unknown cost",
      "$0",
      "$0.000001",
      "$0.00042",
      "$0.0042",
      "$0.10",
      "$1.25",
    ]);
  });
});

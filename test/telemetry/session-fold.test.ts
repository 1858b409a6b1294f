import { string as anyText, assert, property } from "fast-check";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { sessionYaml } from "../../src/telemetry/index.ts";
import { SessionFold } from "../../src/telemetry/session-record.ts";
import { end, failure, leadAndReader, start, teller } from "./hand-made.ts";

it("a turn contains its calls and costs, and next to it its subagents' turns", () => {
  const fold = new SessionFold("desk");
  const ended = leadAndReader().flatMap((event) => fold.note(event) ?? []);
  expect(ended).toEqual(["desk#1"]);
  expect(fold.record).toEqual({
    agent: "lead",
    agent_id: "desk",
    model: "gpt-5",
    started: "2026-01-01T09:00:00.000Z",
    turns: [
      {
        turn_id: "desk#1",
        input: "Compare the papers",
        model: "gpt-5",
        duration_ms: 300,
        tokens: 42,
        cost: 0.000_42,
        tools_called: ["reader"],
        result: "the answer",
        status: "completed",
        stop_reason: "completed",
        subagents: [
          {
            agent: "reader",
            turn_id: "desk~1234abcd#1",
            input: "paper A",
            model: "gpt-5-mini",
            duration_ms: 186,
            tokens: 42,
            cost: null,
            tools_called: ["fetch_page"],
            result: "A says yes",
            status: "completed",
            stop_reason: "completed",
          },
        ],
      },
    ],
  });
});

it("a subagent has its own record too", () => {
  const fold = new SessionFold("desk~1234abcd");
  // Its own events are sufficient; the parent does not matter.
  for (const event of leadAndReader()) fold.note(event);
  expect(fold.record?.turns.map(({ input }) => input)).toEqual(["paper A"]);
  expect(fold.record?.agent).toBe("reader");
});

it("H8: a second turn does not include the cost of the first", () => {
  const clock = { at: start, row: 0 };
  const fold = new SessionFold("desk");
  for (const number of [1, 2]) {
    const desk = teller(clock, { agentId: "desk", turnId: `desk#${number}` });
    fold.note(desk.tell({ type: "turn.started", number, prompt: `question ${number}` }));
    desk.pass(10 * number);
    const calls = ["b", "a"].slice(0, number).map((name, index) => ({ callId: `desk#${number}:1:${1 - index}`, name }));
    for (const call of calls) fold.note(desk.tell({ type: "tool.completed", ...call, durationMs: 1 }, 1));
    const usage = { inputTokens: number, outputTokens: 0 };
    fold.note(desk.tell({ type: "turn.failed", ...end, usage, costMicros: number, error: failure }));
  }
  expect(fold.record?.turns).toMatchObject([
    { duration_ms: 10, tokens: 1, cost: 0.000_001, tools_called: ["b"], model: null },
    // In the order in which the model requested them, not in which they ended.
    { duration_ms: 20, tokens: 2, cost: 0.000_002, tools_called: ["a", "b"], error: "model_error: the model is away" },
  ]);
});

it("has no record before the first turn, and skips turns whose beginning it did not see", () => {
  const fold = new SessionFold("desk");
  const [, ...headless] = leadAndReader();
  for (const event of headless) expect(fold.note(event)).toBeUndefined();
  expect(fold.record).toBeUndefined();
});

it("any text survives writing and reading the file", () => {
  const turn = {
    turn_id: "desk#1",
    model: null,
    duration_ms: 1,
    tokens: 1,
    cost: null,
    tools_called: [],
    status: "completed",
    stop_reason: "completed",
  } as const;
  assert(
    property(anyText({ unit: "binary" }), anyText({ unit: "grapheme" }), (input, result) => {
      const record = {
        agent: "lead",
        agent_id: "desk",
        model: null,
        started: "2026",
        turns: [{ ...turn, input, result }],
      };
      expect(parse(sessionYaml(record))).toEqual(record);
    }),
  );
});

import { describe, expect, it } from "vitest";
import type { TroupeEvent } from "../../src/state/index.ts";
import { type SpanOperation, SpanPlan } from "../../src/telemetry/span-plan.ts";
import { end, failure, leadAndReader, start, teller } from "./hand-made.ts";

function operationsOf(events: readonly TroupeEvent[], { captureContent = false } = {}): SpanOperation[] {
  const plan = new SpanPlan({ captureContent, providerName: "openai" });
  return events.flatMap((event) => plan.operations(event));
}

/** `name [from–to] under parent, error`, one for each span. */
function spansOf(operations: readonly SpanOperation[]): string[] {
  return operations.flatMap((operation) => {
    if (operation.type !== "start") return [];
    const over = operations.find((one) => one.type === "end" && one.key === operation.key);
    const ended = over?.type === "end" ? over : undefined;
    const times = `[${operation.at - start}–${ended ? ended.at - start : ""}]`;
    const error = ended?.error ? `, ${ended.error.type}` : "";
    return [`${ended?.name ?? operation.name} ${times} under ${operation.parent}${error}`];
  });
}

describe("events as spans", () => {
  it("turns, model calls and tool calls, with subagents under the call that spawned them", () => {
    expect(spansOf(operationsOf(leadAndReader()))).toEqual([
      "invoke_agent lead [0–300] under null",
      "chat gpt-5 [1–101] under desk#1",
      "execute_tool reader [103–292] under desk#1",
      "invoke_agent reader [104–290] under desk#1:1:0",
      "chat gpt-5-mini [104–114] under desk~1234abcd#1, model_error",
      "chat gpt-5-mini [164–264] under desk~1234abcd#1",
      "execute_tool fetch_page [265–285] under desk~1234abcd#1, offline",
    ]);
  });

  it("every started span is ended once, in time", () => {
    const operations = operationsOf(leadAndReader());
    const started = operations.filter(({ type }) => type === "start").map(({ key }) => key);
    const ended = operations.filter(({ type }) => type === "end").map(({ key }) => key);
    expect(ended.toSorted()).toEqual(started.toSorted());
    expect(new Set(ended).size).toBe(ended.length);
  });

  it("contain the names of the conventions, and no contents", () => {
    const operations = operationsOf(leadAndReader());
    const [turn, chat, answered] = operations;
    expect(turn).toMatchObject({
      attributes: {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "openai",
        "gen_ai.agent.id": "desk",
        "gen_ai.agent.name": "lead",
        "gen_ai.conversation.id": "desk",
        "troupe.turn.id": "desk#1",
      },
    });
    expect(chat).toMatchObject({
      kind: "client",
      attributes: { "gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-5" },
    });
    expect(answered?.attributes).toEqual({
      "gen_ai.response.model": "gpt-5-2026",
      "gen_ai.usage.input_tokens": 30,
      "gen_ai.usage.output_tokens": 12,
      "troupe.cost.usd": 0.000_42,
    });
    expect(operations.at(-1)).toMatchObject({
      key: "desk#1",
      error: null,
      attributes: {
        "troupe.turn.status": "completed",
        "troupe.turn.stop_reason": "completed",
        "gen_ai.request.model": "gpt-5",
      },
    });
    const contents = ["Compare the papers", "the answer", "A says yes"];
    for (const text of contents) expect(JSON.stringify(operations)).not.toContain(text);
    for (const text of contents)
      expect(JSON.stringify(operationsOf(leadAndReader(), { captureContent: true }))).toContain(text);
  });

  it("have the settings of a model call, also of one that is repeated, and why its answer ended", () => {
    const desk = teller({ at: start, row: 0 }, { agentId: "desk" });
    const settings = {
      temperature: 0.2,
      maxOutputTokens: 900,
      stopSequences: ["END"],
      reasoningEffort: "high",
      toolChoice: "auto",
    } as const;
    const answer = { usage: end.usage, costMicros: null, toolCalls: 0, durationMs: 0, model: "gpt-5" };
    const operations = operationsOf([
      desk.tell({ type: "turn.started", number: 1, prompt: "" }),
      desk.tell({ type: "step.started", model: "gpt-5", settings }, 1),
      desk.tell({ type: "step.restarted", attempt: 2, error: failure, retryAt: start }, 1),
      desk.tell({ type: "model.responded", ...answer, finishReason: "stop" }, 1),
    ]);
    const chats = operations.filter((one) => one.type === "start" && one.name === "chat gpt-5");
    expect(chats).toHaveLength(2);
    for (const chat of chats) {
      expect(chat.attributes).toMatchObject({
        "gen_ai.request.temperature": 0.2,
        "gen_ai.request.max_tokens": 900,
        "gen_ai.request.stop_sequences": ["END"],
        "gen_ai.request.reasoning.level": "high",
      });
    }
    expect(operations.at(-1)?.attributes).toMatchObject({ "gen_ai.response.finish_reasons": ["stop"] });
  });

  it("use the session as the conversation if there is one", () => {
    const desk = teller({ at: start, row: 0 }, { agentId: "desk", sessionId: "visit-4" });
    const [turn] = operationsOf([desk.tell({ type: "turn.started", number: 1, prompt: "" })]);
    expect(turn?.attributes).toMatchObject({ "gen_ai.conversation.id": "visit-4" });
  });
});

describe("a turn that fails or is stopped", () => {
  const desk = teller({ at: start, row: 0 }, { agentId: "desk" });
  const begun = [
    desk.tell({ type: "turn.started", number: 1, prompt: "" }),
    desk.tell({ type: "step.started", model: "gpt-5" }, 1),
  ];

  it("ends the call in flight with its error if it failed", () => {
    desk.pass(70);
    const operations = operationsOf([...begun, desk.tell({ type: "turn.failed", ...end, error: failure })]);
    expect(spansOf(operations)).toEqual([
      "invoke_agent lead [0–70] under null, model_error",
      "chat gpt-5 [0–70] under desk#1, model_error",
    ]);
    expect(operations.at(-1)).toMatchObject({ attributes: { "troupe.turn.status": "failed" } });
  });

  it("is not an error if it was stopped; the interrupted call is", () => {
    const operations = operationsOf([
      ...begun,
      desk.tell({ type: "tool.started", callId: "desk#1:1:0", name: "search", attempt: 1 }, 1),
      desk.tell({ type: "turn.stopped", ...end, stopReason: "user_requested", message: "aborted" }),
    ]);
    expect(spansOf(operations)).toEqual([
      "invoke_agent lead [0–70] under null",
      "execute_tool search [70–70] under desk#1, interrupted",
      "chat gpt-5 [0–70] under desk#1, interrupted",
    ]);
    expect(operations.at(-1)).toMatchObject({
      attributes: { "troupe.turn.status": "stopped", "troupe.turn.stop_reason": "user_requested" },
    });
  });

  it("has no call for an attempt that never began", () => {
    const retried = desk.tell({ type: "step.restarted", attempt: 2, error: failure, retryAt: start + 9_000 }, 1);
    const stopped = desk.tell({ type: "turn.stopped", ...end, stopReason: "user_requested" });
    expect(spansOf(operationsOf([...begun, retried, stopped]))).toEqual([
      "invoke_agent lead [0–70] under null",
      "chat gpt-5 [0–70] under desk#1, model_error",
    ]);
  });
});

describe("events without a start", () => {
  const desk = teller({ at: start + 500, row: 0 }, { agentId: "desk" });
  const begun = desk.tell({ type: "turn.started", number: 1, prompt: "" });
  const call = { callId: "desk#1:1:0", name: "pay" };

  it("a refused call is a span that ends where it begins", () => {
    const refused = desk.tell({ type: "tool.failed", ...call, outcome: "denied", durationMs: 0, error: null }, 1);
    expect(spansOf(operationsOf([begun, refused]))[1]).toBe("execute_tool pay [500–500] under desk#1, denied");
  });

  it("a second attempt is recorded on the call's span; events outside a call on the turn's", () => {
    const operations = operationsOf([
      begun,
      desk.tell({ type: "tool.started", ...call, attempt: 1 }, 1),
      desk.tell({ type: "tool.started", ...call, attempt: 2 }, 1),
      desk.tell({ type: "turn.waiting", reason: "budget" }),
      desk.tell({
        type: "budget.exhausted",
        accountId: "desk#1",
        limit: "maxCostMicros",
        used: 9,
        max: 9,
        message: "lead, this turn",
      }),
    ]);
    expect(operations.filter(({ type }) => type === "note")).toMatchObject([
      { key: "desk#1:1:0", name: "troupe.tool.started", attributes: { "troupe.attempt": 2 } },
      { key: "desk#1", name: "troupe.turn.waiting", attributes: { "troupe.reason": "budget" } },
      {
        key: "desk#1",
        name: "troupe.budget.exhausted",
        attributes: { "troupe.budget.limit": "maxCostMicros", "troupe.budget.max": 9 },
      },
    ]);
  });

  it("a subagent that code spawned is directly under the turn", () => {
    const child = teller(
      { at: start + 501, row: 9 },
      { agentId: "desk~1", rootAgentId: "desk", parentAgentId: "desk", turnId: "desk~1#1" },
    );
    const operations = operationsOf([
      begun,
      desk.tell({ type: "subagent.spawned", callId: null, childId: "desk~1", definition: "reader", mode: "await" }, 1),
      child.tell({ type: "turn.started", number: 1, prompt: "" }),
    ]);
    expect(operations.at(-1)).toMatchObject({ key: "desk~1#1", parent: "desk#1" });
  });

  it("events of unknown turns and parents do no harm", () => {
    const [, ...headless] = leadAndReader();
    expect(spansOf(operationsOf(headless))).toEqual([
      "invoke_agent reader [104–290] under null",
      "chat gpt-5-mini [104–114] under desk~1234abcd#1, model_error",
      "chat gpt-5-mini [164–264] under desk~1234abcd#1",
      "execute_tool fetch_page [265–285] under desk~1234abcd#1, offline",
    ]);
    for (const event of leadAndReader()) expect(() => operationsOf([event])).not.toThrow();
  });
});

it("an attempt of another model has its own span, under the name of that model", () => {
  const clock = { at: start, row: 0 };
  const one = teller(clock, { agentId: "desk" });
  const events = [
    one.tell({ type: "turn.started", number: 1, prompt: "go" }),
    one.tell({ type: "step.started", model: "a", provider: "anthropic" }, 1),
  ];
  one.pass(10);
  const next = { model: "b", provider: "mistral" };
  events.push(one.tell({ type: "step.restarted", attempt: 2, error: failure, retryAt: clock.at, ...next }, 1));
  one.pass(20);
  const usage = { inputTokens: 1, outputTokens: 1 };
  events.push(
    one.tell({ type: "model.responded", model: "b-2026", usage, costMicros: null, toolCalls: 0, durationMs: 20 }, 1),
    one.tell({ type: "turn.completed", ...end }),
  );
  const operations = operationsOf(events);
  expect(spansOf(operations).slice(1)).toEqual([
    `chat a [0–10] under desk#1, ${failure.code}`,
    "chat b [10–30] under desk#1",
  ]);
  const providers = operations.flatMap((one) => (one.type === "start" ? [one.attributes["gen_ai.provider.name"]] : []));
  expect(providers).toEqual(["openai", "anthropic", "mistral"]);
});

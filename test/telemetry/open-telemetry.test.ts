import { SpanKind, SpanStatusCode } from "@opentelemetry/api";
import { expect, it } from "vitest";
import { defineAgent, type Runtime } from "../../src/index.ts";
import { createRedactor, traceToOpenTelemetry } from "../../src/telemetry/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { createGate } from "../support/turn-probes.ts";
import { createSpanRecorder, millisecondsOf } from "./span-recorder.ts";
import { leadOfReaders } from "./team.ts";

async function startedDesk(runtime: Runtime) {
  const desk = await runtime.agent("lead", { agentId: "desk", sessionId: "visit" });
  await desk.start();
  return desk;
}

const wholeTree = [
  "chat large < invoke_agent lead",
  "chat large < invoke_agent lead",
  "chat small < invoke_agent reader < execute_tool reader < invoke_agent lead",
  "chat small < invoke_agent reader < execute_tool reader < invoke_agent lead",
  "chat small < invoke_agent reader < execute_tool reader < invoke_agent lead",
  "chat small < invoke_agent reader < execute_tool reader < invoke_agent lead",
  "execute_tool fetch_page < invoke_agent reader < execute_tool reader < invoke_agent lead",
  "execute_tool fetch_page < invoke_agent reader < execute_tool reader < invoke_agent lead",
  "execute_tool reader < invoke_agent lead",
  "execute_tool reader < invoke_agent lead",
  "invoke_agent lead",
  "invoke_agent reader < execute_tool reader < invoke_agent lead",
  "invoke_agent reader < execute_tool reader < invoke_agent lead",
];

describeRuntimes("spans", (stage) => {
  it("of a lead and two readers form one tree, with the times of the events", async () => {
    const recorder = createSpanRecorder();
    const runtime = await stage().open({ agents: [leadOfReaders(async () => stage().clock.advance(25))] });
    const startedAt = stage().clock.now();
    const telemetry = traceToOpenTelemetry(runtime, {
      tracerProvider: recorder.tracerProvider,
      providerName: "openai",
    });
    const desk = await startedDesk(runtime);
    const result = await desk.executeTurn("Compare").result;
    await telemetry.close();

    expect(recorder.paths()).toEqual(wholeTree);
    expect(new Set(recorder.spans().map((span) => span.spanContext().traceId)).size).toBe(1);
    const turn = recorder.spans().find(({ name }) => name === "invoke_agent lead");
    expect([millisecondsOf(turn?.startTime ?? [0, 0]), millisecondsOf(turn?.endTime ?? [0, 0])]).toEqual([
      startedAt,
      startedAt + 50,
    ]);
    expect(turn?.attributes).toMatchObject({
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.provider.name": "openai",
      "gen_ai.agent.id": "desk",
      "gen_ai.conversation.id": "visit",
      "gen_ai.usage.input_tokens": result.usage.inputTokens,
      "gen_ai.usage.output_tokens": result.usage.outputTokens,
      "troupe.cost.usd": result.cost,
    });
    const chat = recorder.spans().find(({ name }) => name === "chat large");
    expect(chat).toMatchObject({ kind: SpanKind.CLIENT, attributes: { "gen_ai.response.model": "large" } });
    expect(recorder.spans().every(({ status }) => status.code === SpanStatusCode.UNSET)).toBe(true);
    expect(JSON.stringify(recorder.spans().map(({ attributes, events }) => [attributes, events]))).not.toMatch(
      /Compare|north|the end/,
    );
  });

  it("contain prompts, answers, arguments and results if requested, redacted", async () => {
    const recorder = createSpanRecorder();
    const redactor = createRedactor({ secrets: ["south"], environment: {} });
    const runtime = await stage().open({ agents: [leadOfReaders()] });
    const { tracerProvider } = recorder;
    const telemetry = traceToOpenTelemetry(runtime, { tracerProvider, captureContent: true, redactor });
    const desk = await startedDesk(runtime);
    await desk.executeTurn("Compare").result;
    await telemetry.close();

    expect(recorder.paths()).toEqual(wholeTree);
    const spanContent = (name: string) =>
      recorder
        .spans()
        .filter((span) => span.name === name)
        .map(({ attributes }) => attributes);
    expect(spanContent("invoke_agent lead")).toMatchObject([
      {
        "gen_ai.input.messages": '[{"role":"user","parts":[{"type":"text","content":"Compare"}]}]',
        "gen_ai.output.messages": '[{"role":"assistant","parts":[{"type":"text","content":"the end"}]}]',
      },
    ]);
    const fetched = spanContent("execute_tool fetch_page").map(
      (attributes) =>
        `${String(attributes["gen_ai.tool.call.arguments"])} → ${String(attributes["gen_ai.tool.call.result"])}`,
    );
    expect(fetched.toSorted()).toEqual([
      '{"page":"[redacted]"} → text of [redacted]',
      '{"page":"north"} → text of north',
    ]);
    expect(spanContent("chat large")[0]?.["gen_ai.output.messages"]).toContain(
      '"name":"reader","arguments":{"input":"north"}',
    );
  });

  it("of queued turns form one tree each, also if contents take time to read", async () => {
    const recorder = createSpanRecorder();
    const runtime = await stage().open({ agents: [leadOfReaders()] });
    const { tracerProvider } = recorder;
    const telemetry = traceToOpenTelemetry(runtime, { tracerProvider, captureContent: true });
    const desk = await startedDesk(runtime);
    const turns = ["one", "two", "three"].map((input) => desk.executeTurn(input, { ifBusy: "queue" }));
    for (const turn of turns) await turn.result;
    await telemetry.close();
    expect(recorder.paths()).toEqual([...wholeTree, ...wholeTree, ...wholeTree].toSorted());
    expect(new Set(recorder.spans().map((span) => span.spanContext().traceId)).size).toBe(3);
  });

  it("of a turn that another process began start when the turn did", async () => {
    const gate = createGate();
    const first = await stage().openProcess({ agents: [leadOfReaders(() => gate.pass())] });
    const startedAt = stage().clock.now();
    const desk = await startedDesk(first.runtime);
    desk.executeTurn("Compare").id.catch(() => undefined);
    await gate.reached(2);
    await desk.saveState();
    first.kill();
    stage().expireLeases();

    const recorder = createSpanRecorder();
    const second = await stage().open({ agents: [leadOfReaders()] });
    const telemetry = traceToOpenTelemetry(second, { tracerProvider: recorder.tracerProvider });
    const again = await second.agent("lead", { agentId: "desk" });
    const turn = again.turn("desk#1");
    await again.start();
    await second.recover();
    expect((await turn.result).status).toBe("completed");
    await telemetry.close();

    // Calls that ended before are not repeated: the lead's first call, and the readers'.
    const before = [
      "chat large < invoke_agent lead",
      "chat small < invoke_agent reader < execute_tool reader < invoke_agent lead",
    ];
    const expected = [...wholeTree];
    for (const path of [before[0], before[1], before[1]]) expected.splice(expected.indexOf(path ?? ""), 1);
    expect(recorder.paths()).toEqual(expected);
    const span = recorder.spans().find(({ name }) => name === "invoke_agent lead");
    expect(millisecondsOf(span?.startTime ?? [0, 0])).toBe(startedAt);
    expect(millisecondsOf(span?.endTime ?? [0, 0])).toBeGreaterThan(startedAt + 5_000);
  });

  it("of a failed turn have the status error, and those of a stopped one do not", async () => {
    const recorder = createSpanRecorder();
    const gate = createGate();
    const error = new Error("the card 4711 is wrong");
    const failing = defineAgent({
      name: "lead",
      model: scriptedModel(async ({ messages }, { signal }) => {
        if (messages.length > 1) await gate.pass(signal);
        return { error };
      }),
    });
    const runtime = await stage().open({ agents: [failing] });
    const telemetry = traceToOpenTelemetry(runtime, { tracerProvider: recorder.tracerProvider });
    const desk = await startedDesk(runtime);
    await desk.executeTurn("one").result;
    const second = desk.executeTurn("two");
    await gate.reached();
    await second.abort();
    await second.result;
    await telemetry.close();

    const shown = recorder
      .spans()
      .map(({ name, status, attributes }) => [
        name,
        status,
        attributes["error.type"],
        attributes["troupe.turn.stop_reason"],
      ]);
    const failed = { code: SpanStatusCode.ERROR };
    const code = shown[0]?.[2];
    expect(code).toEqual(expect.any(String));
    expect(shown).toEqual([
      ["chat scripted", failed, code, undefined],
      ["invoke_agent lead", failed, code, "error"],
      ["chat scripted", failed, "interrupted", undefined],
      ["invoke_agent lead", { code: SpanStatusCode.UNSET }, undefined, "user_requested"],
    ]);
    expect(JSON.stringify(recorder.spans().map(({ attributes, status }) => [attributes, status]))).not.toContain(
      "4711",
    );
  });
});

it("needs a tracer provider", () => {
  const feed = { subscribe: () => ({ unsubscribe: () => undefined }) } as unknown as Runtime;
  expect(() => traceToOpenTelemetry(feed, {} as never)).toThrow(
    "traceToOpenTelemetry(): tracerProvider is undefined; expected { tracerProvider }",
  );
});

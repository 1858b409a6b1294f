import { describe, expect, test } from "vitest";
import {
  type AgentStep,
  errorsOf,
  newAgentState,
  stepTypeOf,
  viewAgentState,
  withAddedMessages,
  withEntry,
} from "../../src/state/index.ts";
import {
  failure,
  hookApplied,
  journalOf,
  modelFailed,
  modelRequested,
  modelResponded,
  stopSignalled,
  toolSettled,
  toolStarted,
  turnEnded,
  turnId,
} from "../machines/bodies.ts";
import { answer, now, stateAfter, user } from "./agent-values.ts";

describe("steps (row S3)", () => {
  const round = [modelRequested(), modelResponded(1, 2), toolStarted(0), toolSettled(0), toolSettled(1, 1, "error")];

  test("a finished step keeps its times, stop signals and continuation", () => {
    const state = stateAfter(...round, stopSignalled("stop_requested"), modelRequested(2));
    const [first] = state.execution?.stepExecutions ?? [];
    expect(first).toMatchObject({ startedAt: 1_001, completedAt: 1_007 });
    expect(first?.continuation.stopSignals).toMatchObject([{ reason: "stop_requested" }]);
    expect(first?.step.toolExecutions).toMatchObject([
      { outcome: "success", startedAt: 1_003, completedAt: 1_004 },
      { outcome: "error", error: { code: failure.code, callId: `${turnId}:1:1` } },
    ]);
  });

  test("contain the ids of messages new to their call and of their output", () => {
    const hooked = hookApplied("afterTools", 0, { addedMessageIds: ["note"] });
    const state = stateAfter(...round, hooked, modelRequested(2), modelResponded(2), turnEnded());
    const steps = state.execution?.stepExecutions.map(({ step }) => step) ?? [];
    expect(steps.map(({ id }) => id)).toEqual([`${turnId}:1`, `${turnId}:2`]);
    expect(steps[0]?.outputMessageIds).toEqual([`${turnId}:1`, `${turnId}:1:0`, `${turnId}:1:1`]);
    expect(steps[1]?.inputMessageIds).toEqual([`${turnId}:1:0`, `${turnId}:1:1`]);
  });

  const step: AgentStep = {
    id: "s",
    number: 1,
    inputMessageIds: [],
    outputMessageIds: [],
    inference: null,
    toolExecutions: [],
    errors: [],
  };
  const call = { callId: "c", name: "look", startedAt: 1, completedAt: 2 };

  test.each([
    { what: "no calls, no errors", parts: {}, type: "final_response" },
    { what: "a call", parts: { toolExecutions: [{ ...call, outcome: "success" }] }, type: "tool_execution" },
    { what: "a running call", parts: { toolExecutions: [{ ...call, outcome: null }] }, type: "tool_execution" },
    { what: "a failed call", parts: { toolExecutions: [{ ...call, outcome: "denied" }] }, type: "error" },
    { what: "an error", parts: { errors: [failure] }, type: "error" },
    {
      what: "an error and a call",
      parts: { errors: [failure], toolExecutions: [{ ...call, outcome: "success" }] },
      type: "error",
    },
  ] as const)("with $what have the type $type", ({ parts, type }) => {
    expect(stepTypeOf({ ...step, ...(parts as Partial<AgentStep>) })).toBe(type);
  });
});

describe("accessors (row S9)", () => {
  test("before the first execution", () => {
    const view = viewAgentState(newAgentState({ now, agentId: "desk", parentAgentId: "lead" }));
    expect(view).toMatchObject({ agentId: "desk", parentAgentId: "lead", createdAt: now, updatedAt: now });
    expect(view).toMatchObject({ execution: null, status: null, executionDuration: null, stepCount: 0, steps: [] });
    expect(view).toMatchObject({ lastStep: null, lastStepType: null, stopReason: null, hasErrors: false, errors: [] });
    expect(view).toMatchObject({ finalResponse: null, hasFinalResponse: false, currentResponse: [] });
    expect(view.usage).toEqual({ inputTokens: 0, outputTokens: 0 });
    expect(view.debug()).toMatchObject({ hasExecution: false, executionId: null, steps: 0, executionCount: 0 });
  });

  test("while the model is asked", () => {
    const view = viewAgentState(stateAfter(modelRequested()));
    expect(view).toMatchObject({ status: "in_progress", stepCount: 1, lastStepType: null, stopReason: null });
    expect(view).toMatchObject({ hasFinalResponse: false, executionDuration: 0.001 });
  });

  test("with a final response", () => {
    const done = stateAfter(modelRequested(), modelResponded(), turnEnded());
    const view = viewAgentState(withAddedMessages(done, [user, answer("hi there")], now));
    expect(view).toMatchObject({ status: "completed", lastStepType: "final_response", stopReason: "completed" });
    expect(view).toMatchObject({ hasFinalResponse: true, finalResponse: "hi there", hasErrors: false });
    expect(view).toMatchObject({ executionDuration: 0.003, executionCount: 1, systemPrompt: "" });
    expect(view.currentResponse).toEqual([answer("hi there")]);
    expect(view.messages).toEqual([user, answer("hi there")]);
    expect(view.usage).toMatchObject({ inputTokens: 15, outputTokens: 5 });
    expect(view.lastStep).toBe(view.steps.at(-1));
  });

  test("with a round that failed in part", () => {
    const state = stateAfter(modelRequested(), modelResponded(1, 2), toolSettled(0), toolSettled(1, 1, "error"));
    const view = viewAgentState(withAddedMessages(state, [answer("", `${turnId}:1`)], now));
    expect(view).toMatchObject({
      lastStepType: "error",
      hasErrors: true,
      hasFinalResponse: false,
      finalResponse: null,
    });
    expect(view.errors).toEqual(view.execution && errorsOf(view.execution));
    expect(view.currentResponse.map(({ id }) => id)).toEqual([`${turnId}:1`]);
  });

  test("a failed attempt is counted in its usage", () => {
    const failed = modelFailed(2_000, { usage: { inputTokens: 7, outputTokens: 1 } });
    const view = viewAgentState(stateAfter(modelRequested(), failed, modelRequested(1, 2), modelResponded()));
    expect(view.usage).toMatchObject({ inputTokens: 22, outputTokens: 6 });
    expect(view.stepCount).toBe(1);
  });

  test("a cut answer is a natural end with its own reason", () => {
    const cut = modelResponded(1, 0, { finishReason: "length" });
    expect(viewAgentState(stateAfter(modelRequested(), cut, turnEnded())).stopReason).toBe("finish_reason");
  });

  test("debug() prints a summary", () => {
    const state = stateAfter(modelRequested(), stopSignalled("stop_requested"), stopSignalled("token_limit"));
    const goesOn = journalOf([hookApplied("afterLlm", 0, { continueRequested: true })]).reduce(withEntry, state);
    expect(viewAgentState(stateAfter(modelRequested())).debug().continuation).toBe(
      "No Stop Signals; Continuation Requested: No",
    );
    expect(viewAgentState(goesOn).debug()).toEqual({
      status: "in_progress",
      executionCount: 1,
      hasExecution: true,
      executionId: turnId,
      steps: 1,
      continuation: "Stop Signals: stop_requested, token_limit; Continuation Requested: Yes",
      hasErrors: false,
      errors: [],
      usage: { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, reasoningTokens: 0, estimated: false },
    });
  });
});

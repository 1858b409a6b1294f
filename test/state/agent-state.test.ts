import { describe, expect, test } from "vitest";
import {
  type AgentState,
  agentStateOf,
  newAgentState,
  newRecord,
  turnIdOf,
  withAddedMessages,
  withContext,
  withEntry,
  withLlmConfig,
  withMetadata,
  withNewExecution,
  forNextExecution,
} from "../../src/state/index.ts";
import { journalOf, modelRequested, modelResponded, turnEnded } from "../machines/bodies.ts";
import { answer, now, stateAfter, user } from "./agent-values.ts";

describe("the value (row S1)", () => {
  test("a new state has its own id and no execution", () => {
    const [one, other] = [newAgentState({ now }), newAgentState({ now })];
    expect(one.agentId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(one.agentId).not.toBe(other.agentId);
    expect(one).toMatchObject({ parentAgentId: null, createdAt: now, updatedAt: now, executionCount: 0 });
    expect(one).toMatchObject({ llmConfig: null, execution: null });
    expect(one.context).toEqual({ messages: [], metadata: {}, systemPrompt: "", responseFormat: null });
  });

  const changes: { what: string; change: (state: AgentState, at: number) => AgentState }[] = [
    { what: "context", change: (state, at) => withContext(state, { systemPrompt: "be brief" }, at) },
    { what: "messages", change: (state, at) => withAddedMessages(state, [user], at) },
    { what: "metadata", change: (state, at) => withMetadata(state, { a: 1 }, at) },
    { what: "llmConfig", change: (state, at) => withLlmConfig(state, { provider: "p", model: "m" }, at) },
    { what: "a new execution", change: (state, at) => withNewExecution(state, "x", at) },
    { what: "the next execution", change: (state, at) => forNextExecution(state, at) },
  ];

  test.each(changes)("$what: returns a new value with a later time and leaves the old one unchanged", ({ change }) => {
    const state = newAgentState({ now, agentId: "desk" });
    const before = structuredClone(state);
    const next = change(state, now + 5);
    expect(next).not.toBe(state);
    expect(next.updatedAt).toBe(now + 5);
    expect(state).toEqual(before);
  });

  test.each(changes)("$what: time never goes backwards", ({ change }) => {
    expect(change(newAgentState({ now, agentId: "desk" }), now - 5).updatedAt).toBe(now);
  });

  test("cannot be changed in place", () => {
    const state = withAddedMessages(newAgentState({ now }), [user], now);
    for (const frozen of [state, state.context]) expect(Object.isFrozen(frozen)).toBe(true);
  });

  test("changes add up", () => {
    const state = withMetadata(withMetadata(newAgentState({ now }), { a: 1 }, now), { b: 2 }, now);
    expect(state.context.metadata).toEqual({ a: 1, b: 2 });
    expect(withAddedMessages(withAddedMessages(state, [user], now), [answer("hi")], now).context.messages).toEqual([
      user,
      answer("hi"),
    ]);
  });
});

describe("the execution half (row S2)", () => {
  test("starts in progress and is counted", () => {
    const state = withNewExecution(newAgentState({ now }), "first", now + 1);
    expect(state.executionCount).toBe(1);
    expect(state.execution).toMatchObject({ executionId: "first", status: "in_progress", startedAt: now + 1 });
    expect(state.execution).toMatchObject({ completedAt: null, currentStep: null, stepExecutions: [] });
    expect(state.execution?.continuation).toEqual({ stopSignals: [], isContinuationRequested: false });
    expect(withNewExecution(state, "second", now).executionCount).toBe(2);
  });

  test("is dropped by forNextExecution, which keeps the session half", () => {
    const state = withAddedMessages(stateAfter(modelRequested(), modelResponded(), turnEnded()), [user], now);
    const { execution, updatedAt, ...session } = forNextExecution(state, 9_000);
    expect(execution).toBeNull();
    expect(updatedAt).toBe(9_000);
    expect(state).toMatchObject(session);
  });

  test("is updated by its entries, and other entries change nothing", () => {
    const state = stateAfter(modelRequested());
    expect(state.execution?.currentStep?.number).toBe(1);
    expect(state.execution?.currentStepStartedAt).toBe(1_001);
    expect(state.updatedAt).toBe(1_001);
    const [warning] = journalOf([{ type: "warning", code: "c", message: "m" }]);
    expect(warning && withEntry(state, warning)).toBe(state);
  });
});

describe("built from the record", () => {
  const record = {
    ...newRecord({
      tenant: "default",
      agentId: "desk",
      rootAgentId: "desk",
      parentAgentId: null,
      parentTurnId: null,
      parentStep: null,
      parentCallId: null,
      depth: 0,
      definition: { name: "desk", hash: "h" },
      ownerId: null,
      sessionId: null,
      createdAt: now,
      accountId: null,
      parentAccountId: null,
      grantedTools: null,
      maxDepth: 3,
      turnLimits: null,
      metadata: { team: "x" },
    }),
  };
  const { execution } = stateAfter(modelRequested());

  test("identity, metadata and times come from the record", () => {
    const state = agentStateOf(record, null, [user]);
    expect(state).toMatchObject({
      agentId: "desk",
      createdAt: now,
      updatedAt: now,
      executionCount: 0,
      execution: null,
    });
    expect(state.context).toMatchObject({ metadata: { team: "x" }, messages: [user], systemPrompt: "" });
  });

  test("an open turn is counted and determines updatedAt", () => {
    const state = agentStateOf({ ...record, turnCount: 0 }, execution, []);
    expect(state).toMatchObject({ executionCount: 1, updatedAt: 1_001 });
    const third = execution && { ...execution, executionId: turnIdOf("desk", 3) };
    expect(agentStateOf({ ...record, turnCount: 2 }, third, []).executionCount).toBe(3);
  });

  test("the open turn of a paused agent is waiting", () => {
    expect(agentStateOf({ ...record, status: "paused" }, execution, []).execution?.status).toBe("waiting");
    expect(agentStateOf({ ...record, status: "busy" }, execution, []).execution?.status).toBe("in_progress");
  });
});

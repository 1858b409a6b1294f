import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  type Agent,
  type AgentOptions,
  AgentStopError,
  defineAgent,
  defineTool,
  type Message,
} from "../../src/index.ts";
import { agentStateJson, viewAgentState } from "../../src/state/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { elapse } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, type Gate } from "../support/turn-probes.ts";

const look = defineTool({
  name: "look",
  description: "Looks.",
  parameters: z.object({}),
  effect: "none",
  execute: () => "seen",
});

function holding(gate: Gate<string>) {
  return defineTool({
    name: "hold",
    description: "Waits for the test.",
    parameters: z.object({}),
    effect: "none",
    execute: async (_args, run) => await gate.pass(run.signal),
  });
}

function stopping(gate?: Gate<void>) {
  return defineTool({
    name: "stops",
    description: "Stops the run.",
    parameters: z.object({}),
    effect: "none",
    execute: async () => {
      await gate?.pass();
      throw new AgentStopError("enough of tools");
    },
  });
}

describeRuntimes("stop signals and reads of the state (rows S9, S11, S12)", (stage) => {
  async function started(script: ModelScript, options: Partial<AgentOptions> = {}): Promise<Agent> {
    const definition = defineAgent({ tools: [look], ...options, name: "desk", model: scriptedModel(script) });
    const runtime = await stage().open({ agents: [definition] });
    const agent = await runtime.agent("desk", { agentId: "desk", metadata: { team: "x" } });
    await agent.start();
    return agent;
  }

  test("before the first turn there is no execution", async () => {
    const agent = await started("hi", { instructions: "be brief", temperature: 0.5 });
    const state = await agent.getState();
    expect(state).toMatchObject({
      executionCount: 0,
      execution: null,
      context: { messages: [], metadata: { team: "x" } },
    });
    expect(state.context.systemPrompt).toBe("be brief");
    expect(state.llmConfig).toEqual({ provider: "scripted", model: "scripted", temperature: 0.5 });
  });

  test("a computed system prompt is that of the latest turn", async () => {
    const agent = await started(["one", "two"], { instructions: ({ turnId }) => `turn ${turnId}` });
    await agent.executeTurn("go").result;
    await agent.executeTurn("go").result;
    expect((await agent.getState()).context.systemPrompt).toBe("turn desk#2");
  });

  test("S3: a step's input consists of the messages new to its call", async () => {
    const agent = await started([calling("look"), "done"], {
      hooks: { afterTools: (draft) => draft.add({ role: "user", content: "note" }) },
    });
    await agent.executeTurn("go").result;
    const { execution } = agentStateJson.toJSON(await agent.getState());
    const inputs = execution?.stepExecutions.map(({ step }) => step.inputMessages.map(({ content }) => content));
    expect(inputs).toEqual([["go"], ["seen", "note"]]);
  });

  test("it can be read in the middle of a turn", async () => {
    const gate = createGate<string>();
    const agent = await started([calling("hold"), "done"], { tools: [holding(gate)] });
    const turn = agent.executeTurn("go");
    await gate.reached();
    await agent.saveState();
    const view = viewAgentState(await agent.getState());
    expect(view).toMatchObject({ status: "in_progress", stepCount: 1, executionCount: 1, stopReason: null });
    expect(view).toMatchObject({ lastStepType: "tool_execution", hasFinalResponse: false });
    gate.open("late");
    await turn.result;
    expect(viewAgentState(await agent.getState()).finalResponse).toBe("done");
  });

  test("the state that getState() returns is frozen: an attempt to change it throws and changes nothing", async () => {
    const agent = await started([calling("look"), "done"]);
    const { execution } = await agent.executeTurn("go").result;
    const state = await agent.getState();
    expect(state.execution).toEqual(execution);
    expect(() => (state.context.messages as Message[]).push(...state.context.messages)).toThrow(TypeError);
    expect(() => (state.execution?.stepExecutions as unknown[] | undefined)?.pop()).toThrow(TypeError);
    expect((await agent.getState()).execution).toEqual(execution);
  });

  describe("S11", () => {
    const stops = stopping();

    test("AgentStopError in a tool stops with stop_requested, after its round", async () => {
      const agent = await started([calling("stops", "look"), "never"], { tools: [stops, look] });
      const { status, stopReason, steps, signal } = await agent.executeTurn("go").result;
      expect({ status, stopReason, steps }).toEqual({ status: "stopped", stopReason: "stop_requested", steps: 1 });
      expect(signal).toMatchObject({ message: "enough of tools", source: "tool:stops" });
      expect(agent.state.status).toBe("ready");
    });

    test("AgentStopError in beforeLlm stops with stop_requested, before the call", async () => {
      const agent = await started("never", {
        hooks: {
          beforeLlm: () => {
            throw new AgentStopError("enough of hooks");
          },
        },
      });
      const { status, stopReason, steps, signal } = await agent.executeTurn("go").result;
      expect({ status, stopReason, steps }).toEqual({ status: "stopped", stopReason: "stop_requested", steps: 0 });
      expect(signal).toMatchObject({ message: "enough of hooks", source: "hook:agent" });
      expect(agent.state.status).toBe("ready");
    });

    test("AgentStopError in afterTools stops with stop_requested and keeps the round's results", async () => {
      const agent = await started([calling("look"), "never"], {
        hooks: {
          afterTools: () => {
            throw new AgentStopError("enough of rounds");
          },
        },
      });
      const { status, stopReason, steps, toolCalls } = await agent.executeTurn("go").result;
      expect({ status, stopReason, steps, toolCalls }).toEqual({
        status: "stopped",
        stopReason: "stop_requested",
        steps: 1,
        toolCalls: 1,
      });
    });

    test("a hook can request a continuation despite a stop request", async () => {
      let rounds = 0;
      const agent = await started([calling("stops"), calling("look"), "never"], {
        tools: [stops, look],
        hooks: {
          afterTools: (draft) => {
            rounds += 1;
            if (rounds === 1) draft.continue();
          },
        },
      });
      const { stopReason, steps } = await agent.executeTurn("go").result;
      expect({ stopReason, steps }).toEqual({ stopReason: "stop_requested", steps: 2 });
    });
  });

  describe("S12", () => {
    test("cancelled before its first step: 0 steps, stopped", async () => {
      const gate = createGate();
      const agent = await started("never", {
        instructions: async () => {
          await gate.pass();
          return "";
        },
      });
      const turn = agent.executeTurn("go");
      await gate.reached();
      await turn.abort("changed my mind");
      gate.open();
      const { status, stopReason, steps, execution } = await elapse(stage().clock, turn.result);
      expect({ status, stopReason, steps }).toEqual({ status: "stopped", stopReason: "user_requested", steps: 0 });
      expect(execution?.stepExecutions).toEqual([]);
      expect(viewAgentState(await agent.getState())).toMatchObject({ status: "stopped", stepCount: 0, lastStep: null });
    });

    test("cancelled mid-turn: completed steps are kept", async () => {
      const gate = createGate<string>();
      const script: ModelScript = async (_request, { index, signal }) =>
        index < 2 ? calling("look") : await gate.pass(signal);
      const agent = await started(script);
      const turn = agent.executeTurn("go");
      await gate.reached();
      await turn.abort("changed my mind");
      const { status, steps, toolCalls } = await elapse(stage().clock, turn.result);
      expect({ status, steps, toolCalls }).toEqual({ status: "stopped", steps: 3, toolCalls: 2 });
      const { steps: kept, stopReason, executionCount } = viewAgentState(await agent.getState());
      expect(kept.map(({ toolExecutions }) => toolExecutions.map(({ outcome }) => outcome))).toEqual([
        ["success"],
        ["success"],
        [],
      ]);
      expect({ stopReason, executionCount }).toEqual({ stopReason: "user_requested", executionCount: 1 });
    });
  });

  test("S6: of several signals the one with the highest priority counts, in any order", async () => {
    const gate = createGate();
    const agent = await started([calling("stops", "look")], {
      tools: [stopping(gate), look],
      budget: { maxToolCalls: 1 },
    });
    const turn = agent.executeTurn("go");
    for await (const { type } of turn) if (type === "budget.exhausted") gate.open();
    const { stopReason, execution } = await turn.result;
    expect(stopReason).toBe("stop_requested");
    expect(execution?.continuation.stopSignals.map(({ reason }) => reason)).toEqual(["steps_limit", "stop_requested"]);
  });

  test("the open turn of a paused agent is waiting", async () => {
    const gate = createGate<string>();
    const agent = await started([calling("hold"), "done"], { tools: [holding(gate)] });
    const turn = agent.executeTurn("go");
    await gate.reached();
    const pausing = agent.pause();
    gate.open("answered");
    await elapse(stage().clock, pausing);
    const atRest = viewAgentState(await agent.getState());
    await agent.resume();
    const { status } = await elapse(stage().clock, turn.result);
    expect([atRest.status, status]).toEqual(["waiting", "completed"]);
  });
});

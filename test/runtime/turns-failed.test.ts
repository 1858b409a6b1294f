import { expect, it } from "vitest";
import { z } from "zod";
import { type AgentOptions, defineAgent, defineTool, ModelError } from "../../src/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { entriesOfType, orderFault, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, eventsOfTurn, nextEvent, typesOf } from "../support/turn-probes.ts";

const broken = defineTool({
  name: "broken",
  description: "Fails.",
  parameters: z.object({}),
  effect: "none",
  execute: () => {
    throw new Error("no luck");
  },
});
const works = defineTool({
  name: "works",
  description: "Works.",
  parameters: z.object({}),
  effect: "none",
  execute: () => "fine",
});
const outage = () => new ModelError("the provider is down", { retryable: false, mayHaveBeenSent: false });

const twoParts: ModelScript = (_request, { index }) =>
  index < 2 ? { text: `part ${index}`, toolCalls: [{ name: "works" }] } : "whole";

describeRuntimes("a turn that fails or reaches a limit", (stage) => {
  const open = async (script: ModelScript, more: Partial<AgentOptions> = {}) => {
    const model = scriptedModel(script);
    const definition = defineAgent({ name: "worker", model, tools: [broken, works], ...more });
    const runtime = await stage().open({ agents: [definition] });
    const agent = await runtime.agent("worker", { agentId: "w" });
    await agent.start();
    return { runtime, agent, model };
  };

  it("L8: fails with an event and a result, never with a rejection, and has its error once", async () => {
    const { agent } = await open(() => {
      throw outage();
    });
    const turn = agent.executeTurn("go");
    const events = await eventsOfTurn(turn);
    expect(events.at(-1)).toMatchObject({ type: "turn.failed", stopReason: "error" });
    expect(typesOf(events).filter((type) => type === "turn.failed")).toHaveLength(1);
    const result = await turn.result;
    expect(result).toMatchObject({ status: "failed", stopReason: "error", steps: 1 });
    expect(result.error?.message).toContain("the provider is down");
    expect(result.errors).toHaveLength(1);
    expect(await turn.settled).toEqual(result);
    expect(agent.state).toMatchObject({ status: "failed", turnCount: 1, openTurnId: null });
    expect(agent.state.error?.message).toContain("the provider is down");
    expect((await agent.getMessages()).map(({ role }) => role)).toEqual(["user"]);
  });

  it("a failed agent accepts a retry with null, and a successful retry clears its error", async () => {
    const { agent, model } = await open([{ error: outage() }, "recovered"]);
    await agent.executeTurn("go").result;
    const retried = await agent.executeTurn(null).result;
    expect(retried).toMatchObject({ status: "completed", text: "recovered", turnId: "w#2" });
    expect(model.calls[1]?.messages.map(({ content }) => content)).toEqual(["go"]);
    expect(agent.state).toMatchObject({ status: "ready", turnCount: 2 });
    expect(agent.state.error).toBeUndefined();
  });

  it("a failed agent accepts a new turn, a pause or a shutdown", async () => {
    const { agent } = await open([{ error: outage() }, "new", { error: outage() }, { error: outage() }, "after"]);
    await agent.executeTurn("go").result;
    expect((await agent.executeTurn("other").result).text).toBe("new");
    await agent.executeTurn("third").result;
    expect(agent.state.status).toBe("failed");
    await agent.pause();
    await agent.resume();
    await agent.executeTurn("fourth").result;
    expect(agent.state.status).toBe("failed");
    await agent.shutdown();
    expect(agent.state.status).toBe("shutdown");
    await agent.start();
    expect(agent.state.status).toBe("ready");
    expect((await agent.executeTurn("fifth").result).text).toBe("after");
  });

  it("temporary errors of the provider are retried within the step", async () => {
    const passing = new ModelError("busy", { retryable: true, mayHaveBeenSent: false, retryAfterMs: 5_000 });
    const { agent, runtime, model } = await open([{ error: passing }, "second try"]);
    const restarted = nextEvent(runtime, ({ type }) => type === "step.restarted");
    const turn = agent.executeTurn("go");
    expect(await restarted).toMatchObject({ attempt: 2, step: 1, error: { retryable: true } });
    expect(model.calls).toHaveLength(1);
    stage().clock.advance(5_000);
    expect(await turn.result).toMatchObject({ status: "completed", text: "second try", steps: 1, errors: [] });
    expect(agent.state.turnCount).toBe(1);
  });

  it("an exception mid-turn keeps the work done and gives open calls a result", async () => {
    const gate = createGate<string>();
    const stuck = defineTool({
      name: "stuck",
      description: "Waits.",
      parameters: z.object({}),
      effect: "none",
      execute: (_args, run) => gate.pass(run.signal),
    });
    let hits = 0;
    const hooks = {
      beforeLlm: () => {
        hits += 1;
        if (hits === 2) throw new Error("hook broke");
      },
    };
    const { agent, model } = await open([calling("works", "stuck"), "never"], { tools: [works, stuck], hooks });
    const turn = agent.executeTurn("go");
    await gate.reached();
    gate.open("went through");
    const result = await turn.result;
    expect(result).toMatchObject({ status: "failed", stopReason: "error", steps: 1, toolCalls: 2 });
    expect(result.error?.message).toBe("hook broke");
    expect(result.errors.filter(({ message }) => message === "hook broke")).toHaveLength(1);
    const messages = await agent.getMessages();
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "tool"]);
    expect(orderFault(messages)).toBeUndefined();
    expect(model.calls).toHaveLength(1);
    expect(await entriesOfType(stage().look(), "w", "effect.failed")).toHaveLength(1);
  });

  it("an afterTools hook that throws leaves a legal history that the next turn continues", async () => {
    const { agent, model } = await open([calling("works"), "good"], {
      hooks: {
        afterTools: () => {
          throw new Error("hook broke");
        },
      },
    });
    expect(await agent.executeTurn("go").result).toMatchObject({ status: "failed", error: { message: "hook broke" } });
    expect(orderFault(await agent.getMessages())).toBeUndefined();
    expect(await agent.executeTurn(null).result).toMatchObject({ status: "completed", text: "good" });
    expect(orderFault(model.calls[1]?.messages ?? [])).toBeUndefined();
  });

  it("L13: stops after 10 steps by default, naming the limit", async () => {
    const { agent, model } = await open(() => calling("works"));
    const turn = agent.executeTurn("go");
    const events = await eventsOfTurn(turn);
    const result = await turn.result;
    expect(result).toMatchObject({ status: "stopped", stopReason: "steps_limit", steps: 10 });
    expect(result.text).toMatch(/^Task incomplete: step limit \(10\) reached \(\w+, this turn: /);
    expect(model.calls).toHaveLength(10);
    expect(agent.state).toMatchObject({ status: "ready", turnCount: 1 });
    expect(events.at(-1)).toMatchObject({ type: "turn.stopped", stopReason: "steps_limit" });
    expect(typesOf(events)).toContain("budget.exhausted");
    expect(orderFault(await agent.getMessages())).toBeUndefined();
    expect((await agent.getMessages()).at(-1)?.content).toBe(result.text);
  });

  it("a steps limit returns the partial text if there is one, and the next turn has its own steps", async () => {
    const { agent } = await open(twoParts, { budget: { maxSteps: 2 } });
    expect(await agent.executeTurn("go").result).toMatchObject({ stopReason: "steps_limit", text: "part 1", steps: 2 });
    expect(await agent.executeTurn(null).result).toMatchObject({ status: "completed", text: "whole" });
    expect(await agent.executeTurn("x", { budget: { maxSteps: 0 } }).result).toMatchObject({
      status: "stopped",
      stopReason: "steps_limit",
      steps: 0,
    });
  });

  it("L13: fails after 3 rounds in which every call failed", async () => {
    const { agent, model } = await open(() => calling("broken", "broken"));
    const result = await agent.executeTurn("go").result;
    expect(result).toMatchObject({ status: "failed", stopReason: "error", steps: 3 });
    expect(result.signal?.message).toBe("every tool call failed in 3 rounds in a row");
    expect(result.errors.length).toBeGreaterThanOrEqual(6);
    expect(model.calls).toHaveLength(3);
    expect(agent.state.status).toBe("failed");
  });

  it("a round with one success resets the count, and a recovered turn is completed with its errors listed", async () => {
    const script: ModelScript = [
      calling("broken"),
      calling("broken"),
      calling("broken", "works"),
      calling("broken"),
      calling("broken"),
      "recovered",
    ];
    const { agent } = await open(script);
    const result = await agent.executeTurn("go").result;
    expect(result).toMatchObject({ status: "completed", text: "recovered", steps: 6, error: null });
    expect(result.errors).toHaveLength(5);
    expect((await toolTextsOf(agent)).filter((text) => text.includes("no luck"))).toHaveLength(5);
    expect(agent.state.error).toBeUndefined();
  });

  it("instructions that throw fail the turn before its first step", async () => {
    const { agent, model } = await open("never", {
      instructions: () => {
        throw new Error("no instructions");
      },
    });
    const result = await agent.executeTurn("go").result;
    expect(result).toMatchObject({ status: "failed", steps: 0, error: { message: "no instructions" } });
    expect(model.calls).toHaveLength(0);
    expect((await agent.getMessages()).map(({ role }) => role)).toEqual(["user"]);
  });
});

import { expect, it } from "vitest";
import { z } from "zod";
import { type AgentDefinition, AgentBusyError, defineAgent, defineTool, subagent } from "../../src/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { entriesOfType, loopTurns, orderFault } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, nextEvent } from "../support/turn-probes.ts";

/** Enough turns of the event loop for all pending work in memory to finish. */
const aWhile = 20;

const thinker = (script: ModelScript) => defineAgent({ name: "thinker", model: scriptedModel(script) });

describeRuntimes("pause", (stage) => {
  const open = async (definition: AgentDefinition) => {
    const runtime = await stage().open({ agents: [definition] });
    const agent = await runtime.agent(definition.name, { agentId: "p" });
    await agent.start();
    return { runtime, agent };
  };

  it("L6: a ready agent is paused at once, and a turn waits until resume()", async () => {
    const model = scriptedModel("done");
    const { agent } = await open(defineAgent({ name: "thinker", model }));
    await agent.pause();
    expect(agent.state.status).toBe("paused");
    const turn = agent.executeTurn("go");
    await turn.id;
    await loopTurns(aWhile);
    expect(model.calls).toHaveLength(0);
    await expect(agent.executeTurn("two").result).rejects.toThrow(AgentBusyError);
    await agent.resume();
    expect((await turn.result).text).toBe("done");
    expect(agent.state).toMatchObject({ status: "ready", turnCount: 1 });
  });

  it("while thinking: the answer is still recorded, and the next step waits", async () => {
    const gate = createGate<string>();
    let checks = 0;
    const at = z.string().refine(() => {
      checks += 1;
      return true;
    });
    const look = defineTool({
      name: "look",
      description: "Looks.",
      parameters: z.object({ at }),
      effect: "none",
      execute: () => "seen",
    });
    const model = scriptedModel(async (_request, { index, signal }) => {
      if (index > 0) return "done";
      await gate.pass(signal);
      return calling({ name: "look", arguments: { at: "home" } });
    });
    const { agent, runtime } = await open(defineAgent({ name: "thinker", model, tools: [look] }));
    const turn = agent.executeTurn("go");
    await gate.reached();
    const rest = turn.settled;
    const paused = agent.pause();
    const answered = nextEvent(runtime, ({ type }) => type === "model.responded");
    gate.open("x");
    await paused;
    await answered;
    expect(agent.state).toMatchObject({ status: "paused", openTurnId: "p#1" });
    expect(await rest).toEqual({ status: "waiting", turnId: "p#1", reason: "paused" });
    await loopTurns(aWhile);
    expect(await entriesOfType(stage().look(), "p", "tool.started")).toHaveLength(0);
    const told = { intent: "tool.started", reason: "paused", arguments: { at: "home" }, effect: "none" };
    expect(await entriesOfType(stage().look(), "p", "intent.refused")).toMatchObject([told]);
    expect(await agent.getMessages()).toHaveLength(2);
    await agent.resume();
    expect(agent.state.status).toBe("busy");
    expect(await turn.result).toMatchObject({ status: "completed", text: "done", steps: 2, toolCalls: 1 });
    expect(model.calls).toHaveLength(2);
    expect(checks).toBe(1);
  });

  it("while tools run: their results are recorded, and the model is not called", async () => {
    const gates = [createGate<string>(), createGate<string>()];
    let started = 0;
    const slow = defineTool({
      name: "slow",
      description: "Takes its time.",
      parameters: z.object({ n: z.number() }),
      execute: async ({ n }, run) => {
        started += 1;
        return (await gates[n]?.pass(run.signal)) ?? "";
      },
    });
    const model = scriptedModel([
      calling({ name: "slow", arguments: { n: 0 } }, { name: "slow", arguments: { n: 1 } }),
      "done",
    ]);
    const { agent } = await open(defineAgent({ name: "thinker", model, tools: [slow] }));
    const turn = agent.executeTurn("go");
    await Promise.all(gates.map((gate) => gate.reached()));
    gates[0]?.open("first");
    const pausing = agent.pause();
    await loopTurns(aWhile);
    expect(agent.state.status).toBe("busy");
    gates[1]?.open("second");
    await pausing;
    expect(agent.state.status).toBe("paused");
    await loopTurns(aWhile);
    expect(model.calls).toHaveLength(1);
    const messages = await agent.getMessages();
    expect(messages.map(({ content }) => content).slice(2)).toEqual(["first", "second"]);
    await agent.resume();
    expect((await turn.result).text).toBe("done");
    expect(started).toBe(2);
    expect(orderFault(await agent.getMessages())).toBeUndefined();
  });

  it("pauses the whole subtree; a child's model call is recorded, and the child stops there", async () => {
    const gate = createGate<string>();
    const look = defineTool({
      name: "look",
      description: "Looks.",
      parameters: z.object({}),
      effect: "none",
      execute: () => "seen",
    });
    const childModel = scriptedModel(async (_request, { index, signal }) => {
      if (index > 0) return "child done";
      await gate.pass(signal);
      return calling("look");
    });
    const child = defineAgent({ name: "child", model: childModel, tools: [look] });
    const model = scriptedModel([calling({ name: "child", arguments: { input: "do it" } }), "parent done"]);
    const { agent, runtime } = await open(defineAgent({ name: "parent", model, tools: [subagent(child)] }));
    const turn = agent.executeTurn("go");
    await gate.reached();
    await agent.pause();
    expect(agent.state.status).toBe("paused");
    const childPaused = nextEvent(
      runtime,
      (event) => event.type === "lifecycle.changed" && event.status === "paused" && event.parentAgentId === "p",
    );
    gate.open("x");
    await childPaused;
    await loopTurns(aWhile);
    const [record] = (await runtime.list()).filter(({ parentAgentId }) => parentAgentId === "p");
    expect(record).toMatchObject({ status: "paused", turnCount: 0 });
    expect(childModel.calls).toHaveLength(1);
    await agent.resume();
    expect(await turn.result).toMatchObject({ status: "completed", text: "parent done" });
    expect(childModel.calls).toHaveLength(2);
    const records = await runtime.list();
    expect(records.map(({ openTurnId, pause }) => [openTurnId, pause])).toEqual([
      [null, null],
      [null, null],
    ]);
  });

  it("the end of a child whose parent is paused is processed once, after resume()", async () => {
    const gate = createGate<string>();
    const child = thinker((_request, { signal }) => gate.pass(signal));
    const model = scriptedModel([calling({ name: "thinker", arguments: { input: "do it" } }), "parent done"]);
    const { agent, runtime } = await open(defineAgent({ name: "parent", model, tools: [subagent(child)] }));
    const turn = agent.executeTurn("go");
    await gate.reached();
    await agent.pause();
    const childEnded = nextEvent(runtime, ({ type, agentId }) => type === "turn.completed" && agentId !== "p");
    gate.open("child says");
    await childEnded;
    await loopTurns(aWhile);
    expect(model.calls).toHaveLength(1);
    await agent.resume();
    expect((await turn.result).text).toBe("parent done");
    const tools = (await agent.getMessages()).filter(({ role }) => role === "tool");
    expect(tools.map(({ content }) => content)).toEqual(["child says"]);
  });

  it("a paused turn can be aborted, and an agent paused mid-turn is still paused after shutdown() and start()", async () => {
    const gate = createGate<string>();
    const look = defineTool({
      name: "look",
      description: "Looks.",
      parameters: z.object({}),
      effect: "none",
      execute: (_args, run) => gate.pass(run.signal),
    });
    const model = scriptedModel([calling("look"), "done"]);
    const { agent } = await open(defineAgent({ name: "thinker", model, tools: [look] }));
    const turn = agent.executeTurn("go");
    await gate.reached();
    const pausing = agent.pause();
    gate.open("seen");
    await pausing;
    await agent.shutdown();
    await agent.start();
    expect(agent.state).toMatchObject({ status: "paused", openTurnId: "p#1" });
    await loopTurns(aWhile);
    expect(model.calls).toHaveLength(1);
    await agent.abort("enough");
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "user_requested", steps: 1 });
    expect(agent.state.status).toBe("ready");
    expect(model.calls).toHaveLength(1);
  });
});

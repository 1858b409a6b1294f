import { expect, it } from "vitest";
import { z } from "zod";
import { type AgentDefinition, defineAgent, defineTool } from "../../src/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { loopTurns } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, eventsOfTurn, typesOf } from "../support/turn-probes.ts";

/** Enough turns of the event loop for all pending work in memory to finish. */
const aWhile = 20;

const thinker = (script: ModelScript) => defineAgent({ name: "thinker", model: scriptedModel(script) });

describeRuntimes("pause and resume", (stage) => {
  const open = async (definition: AgentDefinition) => {
    const runtime = await stage().open({ agents: [definition] });
    const agent = await runtime.agent(definition.name, { agentId: "p" });
    await agent.start();
    return { runtime, agent };
  };

  it("repeated pauses and resumes count once", async () => {
    const gates = [1, 2, 3].map(() => createGate<string>());
    const look = defineTool({
      name: "look",
      description: "Looks.",
      parameters: z.object({}),
      effect: "none",
      execute: () => "seen",
    });
    const model = scriptedModel(async (_request, { index, signal }) => {
      await gates[index]?.pass(signal);
      return index < 2 ? calling("look") : "done";
    });
    const { agent } = await open(defineAgent({ name: "thinker", model, tools: [look] }));
    const turn = agent.executeTurn("go");
    for (const gate of gates.slice(0, 2)) {
      await gate.reached();
      const pausing = Promise.all([agent.pause(), agent.pause()]);
      gate.open("x");
      await pausing;
      expect(agent.state.status).toBe("paused");
      await Promise.all([agent.resume(), agent.resume()]);
    }
    gates[2]?.open("x");
    expect(await turn.result).toMatchObject({ status: "completed", steps: 3 });
    expect(model.calls).toHaveLength(3);
    await agent.resume();
    expect(agent.state.status).toBe("ready");
  });

  it("resume() before the safe point cancels the pause", async () => {
    const gate = createGate<string>();
    const { agent } = await open(thinker((_request, { signal }) => gate.pass(signal)));
    const turn = agent.executeTurn("go");
    await gate.reached();
    const pausing = agent.pause();
    await agent.resume();
    await pausing;
    expect(agent.state.status).toBe("busy");
    gate.open("done");
    expect((await turn.result).text).toBe("done");
    expect(agent.state.status).toBe("ready");
  });

  it("its events are paused and then busy again, without a step in between", async () => {
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
    const events = eventsOfTurn(turn);
    await gate.reached();
    const pausing = agent.pause();
    gate.open("seen");
    await pausing;
    await loopTurns(aWhile);
    await agent.resume();
    const seen = await events;
    const statuses = seen.flatMap((event) => (event.type === "lifecycle.changed" ? [event.status] : []));
    expect(statuses).toEqual(["busy", "paused", "busy"]);
    expect(typesOf(seen).filter((type) => type === "step.started")).toHaveLength(2);
  });
});

import { expect, it } from "vitest";
import { type AgentDefinition, defineAgent, subagent, textOf } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

function asking(name: string, below: AgentDefinition): AgentDefinition {
  const model = scriptedModel(({ messages }) => {
    const last = messages.at(-1);
    if (last?.role === "tool") return `${name}: ${textOf(last.content)}`;
    return calling({ name: below.name, arguments: { input: "go on" } });
  });
  return defineAgent({ name, model, tools: [subagent(below)] });
}

/** Three levels, each calling the next; the lowest answers once the gate is open. */
function team(gate: ReturnType<typeof createGate<string>> | undefined): AgentDefinition {
  const model = scriptedModel(async () => (gate ? await gate.pass() : "written"));
  return asking("lead", asking("helper", defineAgent({ name: "scribe", model })));
}

describeRuntimes("a tree after a crash", (stage) => {
  it("starting the root continues agents on every level below it", async () => {
    const gate = createGate<string>();
    const doomed = await stage().openProcess({ agents: [team(gate)] });
    const before = await doomed.runtime.agent("lead", { agentId: "lead-1" });
    await before.start();
    before.executeTurn("go");
    await gate.reached();
    doomed.kill();
    stage().expireLeases();
    const survivor = await stage().open({ agents: [team(undefined)] });
    const agent = await survivor.find("lead-1");
    await agent.start();
    const result = await agent.turn("lead-1#1").result;
    gate.open("written by the dead");
    expect(result).toMatchObject({ status: "completed", text: "lead: helper: written" });
    const agents = await stage().look().listAgents({ tenant: "default" });
    expect(agents.map(({ openTurnId, turnCount }) => ({ openTurnId, turnCount }))).toEqual(
      [1, 1, 1].map((turnCount) => ({ openTurnId: null, turnCount })),
    );
  });
});

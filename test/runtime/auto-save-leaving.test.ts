import { expect, it } from "vitest";
import { createAgent, defineAgent, InvalidInputError, subagent } from "../../src/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { loopTurns } from "../support/journal-probes.ts";
import { asks, leadScript } from "../support/leads.ts";
import { ownStores } from "../support/own-stores.ts";
import { describeRuntimes, type Stage } from "../support/runtimes.ts";
import { createGate } from "../support/turn-probes.ts";

const tenant = "default";
const counting: ModelScript = ({ messages }) => `I see ${messages.length}`;
const talker = () => defineAgent({ name: "talker", model: scriptedModel(counting) });

async function agentsSeen(stage: Stage): Promise<string[]> {
  return (await stage.look().listAgents({ tenant })).map(({ agentId }) => agentId);
}

async function openUnsaved(stage: Stage, definition = talker()) {
  const staged = await stage.openProcess({ agents: [definition] });
  const agent = await staged.runtime.agent(definition.name, { agentId: "u", autoSave: false });
  await agent.start();
  return { kill: () => staged.kill(), runtime: staged.runtime, agent };
}

describeRuntimes("pause() and shutdown() with autoSave: false", (stage) => {
  it("L6: pause() saves, so the agent is paused in the next process too", async () => {
    const first = await openUnsaved(stage());
    await first.agent.executeTurn("one").result;
    await first.agent.pause();
    first.kill();
    stage().expireLeases();
    const agent = await (await stage().open({ agents: [talker()] })).find("u");
    await agent.start();
    expect(agent.state).toMatchObject({ status: "paused", turnCount: 1 });
  });

  it("L6: shutdown() saves and releases the agent: another process can start it at once, then this one again", async () => {
    const first = await openUnsaved(stage());
    await first.agent.executeTurn("one").result;
    await first.agent.shutdown();
    expect((await stage().look().readAgent({ tenant, agentId: "u" }))?.status).toBe("shutdown");
    const second = await stage().open({ agents: [talker()] });
    const there = await second.find("u");
    await there.start();
    await there.executeTurn("two").result;
    await second.shutdown();

    await first.agent.start();
    expect(first.agent.state).toMatchObject({ status: "ready", turnCount: 2 });
    expect(await first.agent.executeTurn("three").result).toMatchObject({ text: "I see 5" });
    expect((await stage().look().readAgent({ tenant, agentId: "u" }))?.turnCount, "not saved yet").toBe(2);
    await first.agent.saveState();
    expect((await stage().look().readAgent({ tenant, agentId: "u" }))?.turnCount).toBe(3);
  });

  it("shutdown() mid-turn saves the children's turns too, and the next start() continues all of them", async () => {
    const gate = createGate<string>();
    const reader = defineAgent({ name: "reader", model: scriptedModel((_request, { signal }) => gate.pass(signal)) });
    const lead = defineAgent({
      name: "lead",
      model: scriptedModel(leadScript([asks("reader", "read it")])),
      tools: [subagent(reader)],
    });
    const { agent } = await openUnsaved(stage(), lead);
    const turn = agent.executeTurn("go");
    await gate.reached();
    await agent.shutdown();
    expect((await stage().look().readAgent({ tenant, agentId: "u" }))?.openTurnId).toBe("u#1");
    gate.open("read");
    const [childId = ""] = (await agentsSeen(stage())).filter((agentId) => agentId !== "u");
    await loopTurns(30);
    expect(await stage().look().readAgent({ tenant, agentId: childId })).toMatchObject({ openTurnId: `${childId}#1` });
    await agent.start();
    expect(await turn.result).toMatchObject({ status: "completed", text: "the end", toolCalls: 1 });
    expect((await stage().look().readAgent({ tenant, agentId: "u" }))?.turnCount, "not saved yet").toBe(0);
    await agent.saveState();
    expect((await stage().look().readAgent({ tenant, agentId: "u" }))?.turnCount).toBe(1);
  });

  it("alarms of saved turns that have ended since do not fire", async () => {
    const gate = createGate<string>();
    const script: ModelScript = (_request, { signal }) => gate.pass(signal);
    const { agent, runtime } = await openUnsaved(
      stage(),
      defineAgent({ name: "talker", model: scriptedModel(script), budget: { maxSeconds: 5 } }),
    );
    const turn = agent.executeTurn("go");
    await gate.reached();
    await agent.saveState();
    gate.open("done");
    await turn.result;
    const later = stage().clock.now() + 60_000;
    expect(await stage().look().dueTimers(later, 10)).toHaveLength(1);
    expect(await runtime.stores.dueTimers(later, 10)).toEqual([]);
    expect(await runtime.stores.nextTimerAt()).toBeUndefined();
    await agent.saveState();
    expect(await stage().look().dueTimers(later, 10)).toEqual([]);
  });

  it("shutdown() of the runtime discards unsaved work and leaves the agent to other processes", async () => {
    const first = await openUnsaved(stage());
    await first.agent.executeTurn("one").result;
    await first.agent.saveState();
    await first.agent.executeTurn("lost").result;
    await first.runtime.shutdown();
    const agent = await (await stage().open({ agents: [talker()] })).find("u");
    await agent.start();
    expect(agent.state).toMatchObject({ status: "ready", turnCount: 1 });
  });

  it("projections receive saved rows when they are saved", async () => {
    const own = ownStores();
    const runtime = await stage().open({ agents: [talker()], projections: own });
    const agent = await runtime.agent("talker", { agentId: "u", autoSave: false });
    await agent.start();
    await agent.executeTurn("one").result;
    await runtime.projected("u");
    expect(own.messages.of("u")).toEqual([]);
    await agent.saveState();
    await runtime.projected("u");
    expect(own.messages.of("u")).toEqual(await agent.getMessages());
    await agent.executeTurn("two").result;
    await agent.saveState();
    await runtime.projected("u");
    expect(own.messages.of("u")).toEqual(await agent.getMessages());
    expect(own.messages.appended).toHaveLength(4);
  });
});

describeRuntimes("createAgent({ autoSave: false })", (stage) => {
  it("saves on saveState()", async () => {
    const stores = stage().look();
    const agent = await createAgent({ agentId: "u", model: scriptedModel(counting), stores, autoSave: false });
    await agent.start();
    await agent.executeTurn("one").result;
    expect(await agentsSeen(stage())).toEqual([]);
    await agent.saveState();
    expect(await agentsSeen(stage())).toEqual(["u"]);
    await agent.runtime.shutdown();
  }, 10_000);

  it("is refused for an agent that is live in this process with autoSave", async () => {
    const runtime = await stage().open({ agents: [talker()] });
    const agent = await runtime.agent("talker", { agentId: "u" });
    await agent.start();
    const again = runtime.agent("talker", { agentId: "u", autoSave: false });
    await expect(again).rejects.toThrow(InvalidInputError);
    await expect(again).rejects.toThrow("call its shutdown() before");
    expect((await agent.executeTurn("one").result).status).toBe("completed");
  });
});

import { expect, it } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool, type Runtime, subagent } from "../../src/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { scenarios } from "../machines/scenarios.ts";
import { backgroundScenarios } from "../machines/tree-scenarios.ts";
import { openTill, payment, requestOf } from "../support/deciding.ts";
import { every, rows } from "../support/full.ts";
import { elapse, entriesOf, loopTurns } from "../support/journal-probes.ts";
import { describeRuntimes, type Stage } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

const tenant = "default";
const counting: ModelScript = ({ messages }) => `I see ${messages.length}`;
const talker = (script: ModelScript = counting) => defineAgent({ name: "talker", model: scriptedModel(script) });

/** Returns the ids of the agents that another process finds in the stores. */
async function agentsSeen(stage: Stage): Promise<string[]> {
  return (await stage.look().listAgents({ tenant })).map(({ agentId }) => agentId);
}

async function openUnsaved(stage: Stage, definition = talker(), agentId = "u") {
  const staged = await stage.openProcess({ agents: [definition] });
  const agent = await staged.runtime.agent(definition.name, { agentId, autoSave: false });
  await agent.start();
  return { ...staged, kill: () => staged.kill(), runtime: staged.runtime, agent };
}

/** Opens the agents of this stage with `autoSave: false`. */
function unsaved(stage: Stage): Stage {
  return {
    ...stage,
    clock: stage.clock,
    look: () => stage.look(),
    // saveState() would save at this point. A commit in memory takes one turn of the event loop.
    committed: () => loopTurns(5),
    open: async (options) => {
      const runtime = await stage.open(options);
      const agent: Runtime["agent"] = (name, start) => runtime.agent(name, { ...start, autoSave: false });
      return new Proxy(runtime, { get: (target, name: keyof Runtime) => (name === "agent" ? agent : target[name]) });
    },
  };
}

describeRuntimes(
  "autoSave: false",
  (stage) => {
    const played = scenarios.filter((scenario) => !backgroundScenarios.includes(scenario));
    it.each(rows(played, every(3)))("saves nothing until saveState(), and then everything: $name", async ({ run }) => {
      const runtime = await run(unsaved(stage()), {});
      const agents = await runtime.list();
      const isPaused = (await entriesOf(runtime.stores, "desk")).some(({ type }) => type === "agent.pausing");
      // A pause saves (row L6).
      expect(await agentsSeen(stage())).toHaveLength(isPaused ? 1 : 0);
      await (await runtime.find("desk")).saveState();
      const saved = stage().look();
      expect((await saved.listAgents({ tenant })).map(({ agentId }) => agentId)).toEqual(
        agents.map(({ agentId }) => agentId),
      );
      for (const { agentId } of agents) {
        const key = { tenant, agentId };
        expect(await saved.readAgent(key)).toEqual(await runtime.stores.readAgent(key));
        expect(await entriesOf(saved, agentId)).toEqual(await entriesOf(runtime.stores, agentId));
        expect(await saved.messages(key)).toEqual(await runtime.stores.messages(key));
        expect(await saved.artifacts(key)).toEqual(await runtime.stores.artifacts(key));
        expect(await saved.inbox(key)).toEqual(await runtime.stores.inbox(key));
        expect(await saved.requests({ tenant, agentId })).toEqual(await runtime.stores.requests({ tenant, agentId }));
      }
      expect(await saved.accounts(tenant, "desk")).toEqual(await runtime.accounts("desk"));
    });
  },
  ["memory", "sqlite, restored"],
);

describeRuntimes("saveState()", (stage) => {
  it("L10: after a restart the agent is in the state of the last save", async () => {
    const first = await openUnsaved(stage());
    await first.agent.executeTurn("one").result;
    await first.agent.saveState();
    await first.agent.executeTurn("two").result;
    expect((await stage().look().readAgent({ tenant, agentId: "u" }))?.turnCount).toBe(1);
    await first.agent.saveState();
    await first.agent.executeTurn("lost").result;
    first.kill();
    stage().expireLeases();

    const second = await stage().open({ agents: [talker()] });
    const agent = await second.find("u");
    await agent.start();
    expect(agent.state).toMatchObject({ status: "ready", turnCount: 2 });
    expect(await agent.executeTurn("three").result).toMatchObject({ turnId: "u#3", text: "I see 5" });
    expect((await agent.getMessages()).map(({ content }) => content)).toEqual([
      "one",
      "I see 1",
      "two",
      "I see 3",
      "three",
      "I see 5",
    ]);
  });

  it("also works with autoSave on, and resolves after everything is committed", async () => {
    const runtime = await stage().open({ agents: [talker()] });
    const agent = await runtime.agent("talker", { agentId: "u" });
    await agent.start();
    await agent.executeTurn("one").result;
    await agent.saveState();
    expect((await stage().look().readAgent({ tenant, agentId: "u" }))?.turnCount).toBe(1);
  });

  it("mid-turn: the next process continues the turn with the results of its children", async () => {
    const gate = createGate<string>();
    let life = 1;
    const reader = defineAgent({ name: "reader", model: scriptedModel("read") });
    const look = defineTool({
      name: "look",
      description: "Looks.",
      parameters: z.object({}),
      effect: "none",
      execute: async () => (life === 1 ? await gate.pass() : "seen"),
    });
    const lead = () =>
      defineAgent({
        name: "lead",
        model: scriptedModel(({ messages }) => {
          const results = messages.filter(({ role }) => role === "tool").length;
          if (results === 0) return calling({ name: "reader", arguments: { input: "read it" } });
          return results === 1 ? calling("look") : "the end";
        }),
        tools: [subagent(reader), look],
        budget: { maxTokens: 100_000 },
      });
    const first = await openUnsaved(stage(), lead());
    first.agent.executeTurn("go");
    await gate.reached();
    await first.agent.saveState();
    expect(await agentsSeen(stage())).toHaveLength(2);
    life = 2;
    first.kill();
    stage().expireLeases();

    const second = await stage().open({ agents: [lead()] });
    const agent = await second.find("u");
    expect(agent.state.openTurnId).toBe("u#1");
    await agent.start();
    expect(await agent.turn("u#1").result).toMatchObject({ status: "completed", text: "the end", toolCalls: 2 });
    expect((await agent.getMessages()).map(({ content }) => content)).toEqual([
      "go",
      "",
      "read",
      "",
      "seen",
      "the end",
    ]);
  });

  it("repeated while a turn runs: each save stores the current state", async () => {
    const model = scriptedModel(({ messages }) => (messages.length < 20 ? calling("look") : "the end"));
    let saved = Promise.withResolvers<void>();
    const look = defineTool({
      name: "look",
      description: "Looks.",
      parameters: z.object({}),
      effect: "none",
      // No step ends before it has been saved once.
      execute: async () => {
        await saved.promise;
        return "seen";
      },
    });
    const definition = defineAgent({ name: "talker", model, tools: [look], budget: { maxSteps: 20 } });
    const { agent } = await openUnsaved(stage(), definition);
    const turn = agent.executeTurn("go");
    let isOver = false;
    const result = turn.result.finally(() => {
      isOver = true;
    });
    const seqs: number[] = [];
    while (!isOver) {
      await agent.saveState();
      const onlooker = stage().look();
      const seen = (await entriesOf(onlooker, "u")).map(({ seq }) => seq);
      expect(seen).toEqual(seen.map((_seq, index) => index + 1));
      seqs.push(seen.length);
      await onlooker.close();
      saved.resolve();
      saved = Promise.withResolvers();
      await loopTurns(1);
    }
    expect(await result).toMatchObject({ status: "completed", text: "the end" });
    expect(new Set(seqs).size).toBeGreaterThan(3);
    expect(seqs).toEqual(seqs.toSorted((one, other) => one - other));
  });

  it("while waiting: another process decides the saved request, whether or not this process still runs", async () => {
    const till = openTill();
    const clerk = () =>
      defineAgent({ name: "talker", model: scriptedModel([calling(payment(5)), "paid"]), tools: [till.tool] });
    const first = await openUnsaved(stage(), clerk());
    const turn = first.agent.executeTurn("pay");
    const request = await requestOf(turn);
    expect((await first.runtime.requests()).map(({ requestId }) => requestId)).toEqual([request.requestId]);
    await first.agent.saveState();

    const other = await stage().open({ agents: [clerk()] });
    expect(await other.requests()).toEqual([request]);
    const decide = { verdict: "approved", by: "ann", key: "k" } as const;
    expect(await other.decide(request.requestId, decide)).not.toHaveProperty("isReplayed");
    expect(await elapse(stage().clock, turn.result)).toMatchObject({ status: "completed", text: "paid" });
    expect(till.paid).toEqual([{ to: "Ada", amount: 5 }]);
    const [decided] = await first.runtime.requests({ status: "decided" });
    expect(decided).toMatchObject({ decision: { by: "ann" }, decidedWith: { key: "k", turnId: request.turnId } });
    expect(await first.runtime.decide(request.requestId, decide)).toEqual({ ...decided, isReplayed: true });
    await first.agent.saveState();
    expect(await other.requests()).toEqual([]);
    expect((await stage().look().readAgent({ tenant, agentId: "u" }))?.turnCount).toBe(1);
  });
});

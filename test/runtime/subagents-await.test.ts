import { expect, it } from "vitest";
import { z } from "zod";
import {
  type AgentDefinition,
  defineAgent,
  defineTool,
  type RunContext,
  type Stores,
  textOf,
  type Tool,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { worker } from "../support/background.ts";
import { entriesOfType, loopTurns, orderFault, toolTextsOf } from "../support/journal-probes.ts";
import { leadScript } from "../support/leads.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { createGate } from "../support/turn-probes.ts";

type Effect = "none" | "keyed" | "once";

function delegating(
  execute: (run: RunContext) => unknown,
  {
    effect = "once",
    ...options
  }: { readonly effect?: Effect; readonly concurrency?: number; readonly timeoutMs?: number } = {},
): Tool<never> {
  return defineTool({
    name: "delegate",
    description: "Delegates.",
    parameters: z.object({}),
    effect,
    ...options,
    execute: (_args, run) => execute(run),
  });
}

const leadWith = (tool: Tool<never>, calls = 1): AgentDefinition =>
  defineAgent({
    name: "lead",
    model: scriptedModel(leadScript(Array.from({ length: calls }, () => "delegate"))),
    tools: [tool],
  });

describeRuntimes("run.await", (stage) => {
  async function started(lead: AgentDefinition, child: AgentDefinition) {
    const runtime = await stage().open({ agents: [lead, child] });
    const agent = await runtime.agent("lead", { agentId: "desk" });
    await agent.start();
    return { runtime, agent };
  }

  it("the tool's code has ended, its slot is free and its timeout is off: the child's answer becomes the result", async () => {
    const gate = createGate<string>();
    const child = worker(gate);
    let over = 0;
    const tool = delegating(
      async (run) => {
        const spawned = await run.spawn(child, "dig", { key: "a" });
        over += 1;
        return run.await(spawned, { prefix: "From the mine: " });
      },
      { concurrency: 1, timeoutMs: 1_000 },
    );
    const { runtime, agent } = await started(leadWith(tool, 3), child);
    const turn = agent.executeTurn("go");
    // One slot, three calls: all three children work at the same time.
    await gate.reached(3);
    for (;;) {
      if ((await entriesOfType(runtime.stores, "desk", "child.awaited")).length === 3) break;
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    expect(over).toBe(3);
    stage().clock.advance(60_000);
    gate.open("gold");
    expect(await turn.result).toMatchObject({ status: "completed", text: "the end" });
    expect(await toolTextsOf(agent)).toEqual(Array.from({ length: 3 }, () => "From the mine: gold"));
    expect(orderFault(await agent.getMessages())).toBeUndefined();
  });

  it("a child that has already ended settles the call at once, and its failure is the call's failure", async () => {
    const child = defineAgent({ name: "child", model: scriptedModel({ error: new RangeError("out of range") }) });
    const tool = delegating(async (run) => {
      const spawned = await run.spawn(child, "go", { key: "a" });
      const { status } = await spawned.result;
      expect(status).toBe("failed");
      return run.await(spawned);
    });
    const { agent } = await started(leadWith(tool), child);
    expect(await agent.executeTurn("go").result).toMatchObject({
      status: "completed",
      errors: [{ code: "subagent_failed" }],
    });
    expect(await toolTextsOf(agent)).toEqual(["The subagent failed: out of range"]);
    expect(await entriesOfType(stage().look(), "desk", "child.awaited")).toHaveLength(0);
  });

  it("a child that is spawned after the agent was restored during the tool call belongs to the turn", async () => {
    const child = worker();
    const restored = createGate<undefined>();
    const look = defineTool({
      name: "look",
      description: "Looks.",
      parameters: z.object({}),
      effect: "none",
      execute: () => "seen",
    });
    const tool = delegating(async (run) => {
      await restored.pass();
      return run.await(await run.spawn(child, "dig", { key: "a" }));
    });
    const script = scriptedModel([{ toolCalls: [{ name: "look" }, { name: "delegate" }] }, "the end"]);
    const lead = defineAgent({ name: "lead", model: script, tools: [look, tool] });
    const runtime = await stage().open({ agents: [lead, child], restoreAfterCommit: true });
    const agent = await runtime.agent("lead", { agentId: "desk" });
    await agent.start();
    const turn = agent.executeTurn("go");
    await restored.reached(1);
    while ((await entriesOfType(runtime.stores, "desk", "tool.settled")).length === 0) await loopTurns(1);
    await loopTurns(3);
    restored.open(undefined);
    expect(await turn.result).toMatchObject({ status: "completed", errors: [] });
    expect(await toolTextsOf(agent)).toEqual(["seen", "done: dig"]);
  });

  it("a second call with the same key returns the same child; a child of another turn is refused", async () => {
    const child = worker();
    const tool = delegating(async (run) => {
      const one = await run.spawn(child, "dig", { key: "a" });
      const again = await run.spawn(child, "dig", { key: "a" });
      expect(again.agentId).toBe(one.agentId);
      expect(() => run.await({ agentId: "desk~nobody" })).toThrow(/run\.spawn\(\), not "desk~nobody"/);
      expect(() => run.await(null as never)).toThrow(/run\.spawn\(\), not null/);
      return run.await(again);
    });
    const { runtime, agent } = await started(leadWith(tool), child);
    await agent.executeTurn("go").result;
    expect(await toolTextsOf(agent)).toEqual(["done: dig"]);
    expect(await runtime.list()).toHaveLength(2);
  });

  it("the call continues to wait after its process died, even if its effect is once", async () => {
    const gate = createGate<string>();
    let runs = 0;
    const definitions = (answer: boolean): AgentDefinition[] => {
      const child = defineAgent({
        name: "child",
        model: scriptedModel(({ messages }) =>
          answer ? `done: ${textOf(messages.at(-1)?.content ?? "")}` : gate.pass(),
        ),
      });
      const tool = delegating(async (run) => {
        runs += 1;
        return run.await(await run.spawn(child, "dig", { key: "a" }));
      });
      return [leadWith(tool), child];
    };
    const doomed = await stage().openProcess({ agents: definitions(false) });
    const before = await doomed.runtime.agent("lead", { agentId: "desk" });
    await before.start();
    before.executeTurn("go");
    await gate.reached();
    for (;;) {
      if ((await entriesOfType(stage().look(), "desk", "child.awaited")).length > 0) break;
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    doomed.kill();
    stage().expireLeases();
    const survivor = await stage().open({ agents: definitions(true) });
    const agent = await survivor.find("desk");
    await survivor.recover();
    expect(await agent.turn("desk#1").result).toMatchObject({ status: "completed", text: "the end" });
    expect(await toolTextsOf(agent)).toEqual(["done: dig"]);
    expect(runs).toBe(1);
  });

  it("an abort of the turn ends the child and gives the call one result", async () => {
    const gate = createGate<string>();
    const child = worker(gate);
    const tool = delegating(async (run) => run.await(await run.spawn(child, "dig", { key: "a" })));
    const { runtime, agent } = await started(leadWith(tool), child);
    const turn = agent.executeTurn("go");
    await gate.reached();
    for (;;) {
      if ((await entriesOfType(runtime.stores, "desk", "child.awaited")).length > 0) break;
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    await turn.abort("enough");
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "user_requested" });
    expect(await toolTextsOf(agent)).toEqual(["Interrupted by user"]);
    const [spawned] = await entriesOfType(stage().look(), "desk", "child.spawned");
    const childId = spawned?.childId ?? "";
    expect(await (await runtime.find(childId)).turn(`${childId}#1`).result).toMatchObject({ status: "stopped" });
  });

  it("a pause does not wait for a call that waits for a child", async () => {
    const gate = createGate<string>();
    const child = worker(gate);
    const tool = delegating(async (run) => run.await(await run.spawn(child, "dig", { key: "a" })));
    const { agent } = await started(leadWith(tool), child);
    const turn = agent.executeTurn("go");
    await gate.reached();
    await agent.pause();
    expect(agent.state.status).toBe("paused");
    gate.open("gold");
    await agent.resume();
    expect(await turn.result).toMatchObject({ status: "completed" });
    expect(await toolTextsOf(agent)).toEqual(["gold"]);
  });
});

describeRuntimes("children spawned with agent.spawn()", (stage) => {
  async function started(lead: AgentDefinition, child: AgentDefinition, budget?: { readonly maxTokens: number }) {
    const runtime = await stage().open({ agents: [lead, child] });
    const agent = await runtime.agent("lead", { agentId: "desk", budget });
    await agent.start();
    return { runtime, agent };
  }

  it("stop during a pause, are not affected by an abort of a turn, and spend from the agent's lifetime account", async () => {
    const gate = createGate<string>();
    const hold = createGate<string>();
    const child = worker(gate);
    const lead = defineAgent({ name: "lead", model: scriptedModel((_request, { signal }) => hold.pass(signal)) });
    const { runtime, agent } = await started(lead, child, { maxTokens: 100_000 });
    const spawned = await agent.spawn(child, "dig", { key: "a", budget: { maxTokens: 5_000 } });
    const turn = agent.executeTurn("go");
    await Promise.all([gate.reached(), hold.reached()]);
    await turn.abort("enough");
    await turn.result;
    const { agentId } = spawned.agent;
    const accounts = await runtime.accounts("desk");
    expect(accounts.find(({ id }) => id === `agent:${agentId}`)).toMatchObject({
      parentId: "agent:desk",
      limits: { maxTokens: 5_000 },
    });
    expect(accounts.find(({ id }) => id === "agent:desk")?.reserved.tokens).toBeGreaterThan(0);
    await agent.pause();
    gate.open("gold");
    await atRest(runtime.stores, agentId);
    await agent.resume();
    expect(await spawned.turn.result).toMatchObject({ status: "completed", text: "gold" });
    expect(agent.state.turnCount).toBe(1);
    expect((await runtime.accounts("desk")).find(({ id }) => id === "agent:desk")?.used.tokens).toBeGreaterThan(0);
  });

  it("the same key returns the same child, for concurrent calls and after a restart", async () => {
    const child = worker();
    const lead = defineAgent({ name: "lead", model: scriptedModel("unused") });
    const { runtime, agent } = await started(lead, child);
    const both = await Promise.all([agent.spawn(child, "dig", { key: "a" }), agent.spawn(child, "dig", { key: "a" })]);
    const results = await Promise.all(both.map(({ turn }) => turn.result));
    expect(new Set(results.map(({ turnId }) => turnId)).size).toBe(1);
    expect(await runtime.list()).toHaveLength(2);
    const again = await agent.spawn(child, "dig", { key: "a" });
    expect((await again.turn.result).turnId).toBe(results[0]?.turnId);
  });
});

/** Returns the child's status once it is paused or has no open turn. */
async function atRest(stores: Stores, childId: string): Promise<string> {
  for (;;) {
    const record = await stores.readAgent({ tenant: "default", agentId: childId });
    if (record && record.status !== "busy" && record.lastActivity >= 0 && record.status !== "created") {
      if (record.status === "paused" || record.openTurnId === null) return record.status;
    }
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

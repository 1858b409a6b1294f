import { expect, it } from "vitest";
import { z } from "zod";
import {
  type AgentDefinition,
  defineAgent,
  defineTool,
  type RuntimeOptions,
  type Stores,
  subagent,
  textOf,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { requestOf, startAgent } from "../support/deciding.ts";
import { elapse, loopTurns } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

const aWhile = 40;
const nothing = z.object({});

/** Records the model calls and tool runs that a team starts. */
class Begun {
  readonly list: string[] = [];

  /** An agent that calls each of its tools once, all at the same time, and then answers. */
  agent(name: string, tools: Parameters<typeof defineAgent>[0]["tools"] & object[]): AgentDefinition {
    const model = scriptedModel(({ messages, tools: shown = [] }) => {
      this.list.push(`model of ${name}`);
      const own = shown.filter((tool) => !tool.name.startsWith("subagent_"));
      if (messages.some(({ role }) => role === "tool")) return `${name} done`;
      return calling(...own.map((tool) => ({ name: tool.name, arguments: isAgent(tool.name) ? { input: "go" } : {} })));
    });
    return defineAgent({ name, model, tools });
  }

  tool(name: string, traits: { readonly needsApproval?: boolean } = {}) {
    return defineTool({
      name,
      description: name,
      parameters: nothing,
      effect: "once",
      ...traits,
      execute: () => {
        this.list.push(`tool ${name}`);
        return "done";
      },
    });
  }
}

const isAgent = (name: string): boolean => name.startsWith("agent_");

/** A lead with a child, a grandchild and a background child. */
function teamOf(begun: Begun): AgentDefinition {
  const grandchild = begun.agent("agent_below", [begun.tool("dig")]);
  const child = begun.agent("agent_child", [begun.tool("look"), subagent(grandchild, { description: "Helps." })]);
  const digger = begun.agent("agent_behind", [begun.tool("drill")]);
  return begun.agent("lead", [
    begun.tool("lead"),
    subagent(child, { description: "Helps." }),
    subagent(digger, { description: "Digs.", mode: "background" }),
  ]);
}

/** A model that calls a subagent and then ends its turn. */
function delegating(child: AgentDefinition, end: (signal: AbortSignal) => string | Promise<string>) {
  return scriptedModel(({ messages }, { signal }) =>
    messages.at(-1)?.role === "tool" ? end(signal) : calling({ name: child.name, arguments: { input: "dig" } }),
  );
}

describeRuntimes("a shutdown of an agent with subagents", (stage) => {
  it("starts nothing new below it, at whichever event it is called, and everything continues after the next start", async () => {
    let reached = 0;
    for (let at = 0; ; at += 1) {
      const begun = new Begun();
      const runtime = await stage().open({ agents: [teamOf(begun)] });
      const agent = await startAgent(runtime, "lead", `s-${at}`);
      let count = 0;
      let after: number | undefined;
      let over: Promise<unknown> | undefined;
      const watching = runtime.subscribe(() => {
        if (count === at) {
          over = agent.shutdown();
          after = begun.list.length;
        }
        count += 1;
      });
      const turn = agent.executeTurn("go");
      await turn.id;
      const isOver = async (): Promise<boolean> =>
        (await runtime.list()).every(({ openTurnId }) => openTurnId === null) && agent.state.turnCount === 1;
      while (over === undefined && !(await isOver())) await loopTurns(1);
      await over;
      await loopTurns(aWhile);
      watching.unsubscribe();
      if (after === undefined) break;
      reached += 1;
      expect({ at, begun: begun.list.slice(after) }).toEqual({ at, begun: [] });
      await agent.start();
      expect(await elapse(stage().clock, turn.result)).toMatchObject({ status: "completed", text: "lead done" });
      while (!(await isOver())) await loopTurns(1);
      const agents = await runtime.list({ rootAgentId: agent.agentId });
      expect(agents.map(({ error }) => error ?? null)).toEqual([null, null, null, null]);
      await runtime.shutdown();
    }
    expect(reached).toBeGreaterThan(25);
  });

  it("a decision for a subagent is kept until the next start, even if the subagent was passive", async () => {
    const begun = new Begun();
    const child = begun.agent("agent_child", [begun.tool("pay", { needsApproval: true })]);
    const idle: RuntimeOptions["idle"] = { keptMs: 0 };
    const lead = begun.agent("lead", [subagent(child, { description: "Helps." })]);
    const runtime = await stage().open({ agents: [lead], idle });
    const agent = await startAgent(runtime, "lead", "s");
    const turn = agent.executeTurn("go");
    const { requestId } = await requestOf(turn);
    for (let look = 0; look < 4; look += 1) {
      stage().clock.advance(500);
      await loopTurns(5);
    }
    await agent.shutdown();
    const before = begun.list.length;
    await runtime.decide(requestId, { verdict: "approved" });
    await loopTurns(aWhile);
    expect(begun.list.slice(before)).toEqual([]);
    await agent.start();
    expect(await elapse(stage().clock, turn.result)).toMatchObject({ status: "completed", text: "lead done" });
    expect(begun.list.filter((one) => one === "tool pay")).toHaveLength(1);
  });

  it("stops the turn of a background child of an idle agent, which continues with the agent", async () => {
    const gate = createGate<string>();
    const model = scriptedModel(({ messages }, { signal }) =>
      textOf(messages[0]?.content ?? "") === "dig" ? gate.pass(signal) : "never",
    );
    const digger = defineAgent({ name: "digger", model });
    const script = scriptedModel(({ messages }) =>
      messages.at(-1)?.role === "tool" ? "begun" : calling({ name: "digger", arguments: { input: "dig" } }),
    );
    const tools = [subagent(digger, { description: "Digs.", mode: "background" })];
    const runtime = await stage().open({ agents: [defineAgent({ name: "lead", model: script, tools })] });
    const agent = await startAgent(runtime, "lead", "s");
    expect((await agent.executeTurn("go").result).text).toBe("begun");
    await gate.reached();
    await agent.shutdown();
    const calls = model.calls.length;
    gate.open("gold");
    await loopTurns(aWhile);
    const [child] = (await runtime.list()).filter(({ agentId }) => agentId !== "s");
    expect(child).toMatchObject({ openTurnId: `${child?.agentId}#1` });
    expect(model.calls).toHaveLength(calls);
    await agent.start();
    const again = await runtime.find(child?.agentId ?? "");
    expect(await again.turn(`${again.agentId}#1`).result).toMatchObject({ status: "completed", text: "gold" });
    await runtime.shutdown();
  });

  it.each([
    { parent: "idle", of: "child" },
    { parent: "busy", of: "child" },
    { parent: "busy", of: "grandchild" },
  ])(
    "a $of that is recovered after the shutdown of the $parent lead waits for the lead's start",
    async ({ parent, of }) => {
      const gates = { lead: createGate<string>(), digger: createGate<string>() };
      const model = scriptedModel((_request, { signal }) => gates.digger.pass(signal));
      const digger = defineAgent({ name: "digger", model });
      const background = { description: "Digs.", mode: "background" } as const;
      const middle = defineAgent({
        name: "middle",
        model: delegating(digger, () => "begun"),
        tools: [subagent(digger, background)],
      });
      const below = of === "child" ? digger : middle;
      const lead = defineAgent({
        name: "lead",
        model: delegating(below, (signal) => (parent === "idle" ? "begun" : gates.lead.pass(signal))),
        tools: [subagent(below, background)],
      });
      const agents = [digger, middle, lead];
      const dying = await stage().openProcess({ agents });
      const begun = (await startAgent(dying.runtime, "lead", "s")).executeTurn("go");
      await (parent === "idle" ? begun.result : gates.lead.reached());
      await gates.digger.reached();
      const agentId = (await dying.runtime.list({ rootAgentId: "s" })).find(
        ({ definition }) => definition.name === "digger",
      )?.agentId;
      if (agentId === undefined) throw new Error("expected a digger");
      dying.kill();
      stage().expireLeases();

      const [taken, arrival] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const through = (stores: Stores): Stores => {
        const acquire: Stores["acquire"] = async (key, ...how) => {
          const outcome = await stores.acquire(key, ...how);
          if (key.agentId !== agentId) return outcome;
          taken.resolve();
          await arrival.promise;
          return outcome;
        };
        return { ...stores, acquire };
      };
      const { runtime } = await stage().openProcess({ agents, through });
      const agent = await startAgent(runtime, "lead", "s");
      await elapse(stage().clock, taken.promise);
      await agent.shutdown();
      const calls = model.calls.length;
      arrival.resolve();
      gates.digger.open("gold");
      gates.lead.open("begun");
      await loopTurns(aWhile);
      expect(model.calls).toHaveLength(calls);
      await agent.start();
      const again = await runtime.find(agentId);
      expect(await elapse(stage().clock, again.turn(`${agentId}#1`).result)).toMatchObject({ text: "gold" });
      await runtime.shutdown();
    },
  );

  it("a subagent that a handle starts continues", async () => {
    const gate = createGate<string>();
    const child = defineAgent({ name: "child", model: scriptedModel((_request, { signal }) => gate.pass(signal)) });
    const lead = defineAgent({ name: "lead", model: scriptedModel("never") });
    const runtime = await stage().open({ agents: [lead, child] });
    const agent = await startAgent(runtime, "lead", "s");
    const spawned = await agent.spawn(child, "go", { key: "one" });
    await gate.reached();
    await agent.shutdown();
    gate.open("child done");
    await loopTurns(aWhile);
    expect(spawned.agent.state).toMatchObject({ status: "shutdown", openTurnId: spawned.agent.state.openTurnId });
    await spawned.agent.start();
    expect(await spawned.turn.result).toMatchObject({ status: "completed", text: "child done" });
    expect((await spawned.agent.executeTurn("more").result).text).toBe("child done");
    await runtime.shutdown();
  });
});

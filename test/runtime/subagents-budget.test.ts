import { expect, it } from "vitest";
import { type Agent, type AgentDefinition, type Budget, defineAgent, type Runtime, subagent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { leadOf, reportsIn, startedIds, worker } from "../support/background.ts";
import { elapse, entriesOfType } from "../support/journal-probes.ts";
import { asks } from "../support/leads.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, nextEvent } from "../support/turn-probes.ts";

const usage = { inputTokens: 100, outputTokens: 100 };

async function accountOf(runtime: Runtime, id: string) {
  return (await runtime.accounts("desk")).find((account) => account.id === id);
}

/** A lead that spawns `children` children and then answers; each of its own calls costs `usage`. */
function lead(child: AgentDefinition, children: number, budget: Budget, onEnd: "keep" | "wake" = "keep") {
  return leadOf(
    child,
    ({ text, last, messages }) => {
      if (text === "go") return { toolCalls: Array.from({ length: children }, () => asks("worker", "dig")), usage };
      return { text: last.role === "tool" ? "started" : `seen ${reportsIn(messages).length}`, usage };
    },
    { budget, onEnd, maxOutputTokens: 300 },
  );
}

const spending = (gate: ReturnType<typeof createGate<string>>): AgentDefinition =>
  defineAgent({
    name: "worker",
    maxOutputTokens: 300,
    model: scriptedModel(async (_request, { signal }) => ({ text: await gate.pass(signal), usage })),
  });

describeRuntimes("accounts of background children", (stage) => {
  async function started(lead: AgentDefinition) {
    const runtime = await stage().open({ agents: [lead] });
    const agent = await runtime.agent("lead", { agentId: "desk" });
    await agent.start();
    return { runtime, agent };
  }

  it("when the turn ends, its children's reservations leave its account, and they share what it had left", async () => {
    const gate = createGate<string>();
    const { runtime, agent } = await started(lead(spending(gate), 2, { maxTokens: 3_000, maxSteps: 6 }));
    const turn = agent.executeTurn("go");
    await turn.result;
    await gate.reached(2);
    const [first = "", second = ""] = startedIds(await agent.getMessages());
    const own = await accountOf(runtime, "turn:desk#1");
    expect(own).toMatchObject({
      used: { tokens: 400, steps: 2 },
      reserved: { tokens: 0 },
      activeCount: 0,
      isActive: false,
    });
    const shared = await accountOf(runtime, "background:desk#1");
    expect(shared).toMatchObject({
      parentId: null,
      limits: { maxTokens: 2_600, maxSteps: 4 },
      used: { tokens: 0 },
      activeCount: 2,
    });
    expect(shared?.reserved.tokens).toBeGreaterThan(600);
    expect((await accountOf(runtime, `agent:${first}`))?.parentId).toBe("background:desk#1");
    expect((await accountOf(runtime, `agent:${second}`))?.parentId).toBe("background:desk#1");
    gate.open("gold");
    await Promise.all([first, second].map(async (id) => (await runtime.find(id)).turn(`${id}#1`).result));
    expect(await accountOf(runtime, "background:desk#1")).toMatchObject({
      used: { tokens: 400 },
      reserved: { tokens: 0 },
      activeCount: 0,
    });
    expect(await accountOf(runtime, "turn:desk#1")).toEqual(own);
  });

  it("the turn's remaining budget limits them and the turn started for their results", async () => {
    const gate = createGate<string>();
    const { runtime, agent } = await started(lead(spending(gate), 1, { maxTokens: 1_200, maxSteps: 3 }, "wake"));
    await agent.executeTurn("go").result;
    await gate.reached();
    gate.open("gold");
    const woken = await resultOfOwn(runtime, agent, "desk#2");
    expect(woken).toMatchObject({ status: "completed", text: "seen 1" });
    const account = await accountOf(runtime, "turn:desk#2");
    expect(account).toMatchObject({ parentId: "background:desk#1", used: { tokens: 200, steps: 1 } });
    expect(await accountOf(runtime, "background:desk#1")).toMatchObject({
      limits: { maxTokens: 800, maxSteps: 1 },
      used: { tokens: 400, steps: 1 },
    });
  });

  it("a turn started without any budget left ends at once and starts no other", async () => {
    const gate = createGate<string>();
    const { runtime, agent } = await started(lead(spending(gate), 1, { maxSteps: 2 }, "wake"));
    await agent.executeTurn("go").result;
    await gate.reached();
    gate.open("gold");
    expect(await resultOfOwn(runtime, agent, "desk#2")).toMatchObject({
      status: "stopped",
      stopReason: "steps_limit",
      steps: 0,
    });
    expect(await entriesOfType(runtime.stores, "desk", "turn.started")).toHaveLength(2);
    expect(agent.state).toMatchObject({ status: "ready", openTurnId: null });
  });

  it("turns that start one another spend from the first turn's budget and come to an end", async () => {
    const chain = scriptedModel(({ messages }) =>
      messages.at(-1)?.role === "tool" ? { text: "started", usage } : { toolCalls: [asks("worker", "dig")], usage },
    );
    const tools = [subagent(worker(), { mode: "background", onEnd: "wake" })];
    const { runtime, agent } = await started(
      defineAgent({ name: "lead", model: chain, tools, budget: { maxSteps: 9, maxTreeSteps: 14 } }),
    );
    await agent.executeTurn("go").result;
    for (let number = 2; ; number += 1) {
      const { stopReason } = await resultOfOwn(runtime, agent, `desk#${number}`);
      if (stopReason !== "completed") break;
    }
    const starts = await entriesOfType(runtime.stores, "desk", "turn.started");
    expect(starts.length).toBeLessThanOrEqual(6);
    const steps = (await runtime.list()).map(async ({ agentId }) => {
      const requests = await entriesOfType(runtime.stores, agentId, "model.requested");
      return requests.filter(({ attempt }) => attempt === 1).length;
    });
    expect((await Promise.all(steps)).reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(14);
    // The number of background accounts does not grow with each turn.
    const ids = (await runtime.accounts("desk")).filter(({ id }) => id.startsWith("background:")).map(({ id }) => id);
    expect(ids).toEqual(["background:desk#1"]);
  });

  it.each([{ maxSeconds: 30 }, { deadline: 40_000 }])(
    "F17: %o of the turn cuts them even after the turn has ended",
    async (given) => {
      const gate = createGate<string>();
      const deadline = "deadline" in given ? { deadline: stage().clock.now() + given.deadline } : given;
      const { runtime, agent } = await started(lead(worker(gate), 1, deadline));
      await agent.executeTurn("go").result;
      await gate.reached();
      const [childId = ""] = startedIds(await agent.getMessages());
      const child = await runtime.find(childId);
      const before = stage().clock.now();
      const told = nextEvent(runtime, ({ type }) => type === "subagent.ended");
      const ended = await elapse(stage().clock, child.turn(`${childId}#1`).result, 100);
      expect(ended).toMatchObject({ status: "stopped", stopReason: "time_limit" });
      expect(ended.signal?.message).toMatch(/lead, its background children/);
      expect(stage().clock.now() - before).toBeLessThan(42_000);
      expect(stage().clock.now() - before).toBeGreaterThan(29_000);
      for (const { reserved, activeCount } of await runtime.accounts("desk")) {
        expect([reserved.tokens, activeCount]).toEqual([0, 0]);
      }
      await told;
      expect(reportsIn(await agent.getMessages())).toHaveLength(1);
    },
  );

  it("get the working time that the turn had left when it ended", async () => {
    const gate = createGate<string>();
    const hold = createGate<string>();
    const definition = leadOf(
      worker(gate),
      async ({ text, last }) => {
        if (text === "go") return calling(asks("worker", "dig"));
        return last.role === "tool" ? await hold.pass() : "unused";
      },
      { budget: { maxSeconds: 30 } },
    );
    const { runtime, agent } = await started(definition);
    const turn = agent.executeTurn("go");
    await Promise.all([gate.reached(), hold.reached()]);
    stage().clock.advance(20_000);
    hold.open("bye");
    await turn.result;
    expect((await accountOf(runtime, "background:desk#1"))?.limits.maxActiveMs).toBe(10_000);
    const [childId = ""] = startedIds(await agent.getMessages());
    const before = stage().clock.now();
    const ended = await elapse(stage().clock, (await runtime.find(childId)).turn(`${childId}#1`).result, 100);
    expect(ended).toMatchObject({ stopReason: "time_limit" });
    expect(stage().clock.now() - before).toBeLessThan(11_500);
  });

  it("the child of an awaited child is limited by what all accounts above it had left", async () => {
    const gate = createGate<string>();
    const middle = defineAgent({
      name: "middle",
      model: scriptedModel(({ messages }) =>
        messages.at(-1)?.role === "tool" ? { text: "begun", usage } : { toolCalls: [asks("worker", "dig")], usage },
      ),
      tools: [subagent(spending(gate), { mode: "background" })],
    });
    const top = defineAgent({
      name: "lead",
      maxOutputTokens: 300,
      model: scriptedModel(({ messages }) =>
        messages.at(-1)?.role === "tool" ? { text: "done", usage } : { toolCalls: [asks("middle", "go")], usage },
      ),
      tools: [subagent(middle)],
      budget: { maxTokens: 20_000 },
    });
    const { runtime, agent } = await started(top);
    expect(await agent.executeTurn("go").result).toMatchObject({ status: "completed", text: "done" });
    await gate.reached();
    const shared = await accountOf(runtime, "background:desk#1");
    expect(shared).toMatchObject({ activeCount: 1, limits: { maxTokens: 20_000 - 800 } });
    expect(await accountOf(runtime, "turn:desk#1")).toMatchObject({ reserved: { tokens: 0 }, activeCount: 0 });
    await agent.abort();
    for (const { openTurnId, agentId } of await runtime.list()) {
      if (openTurnId !== null) await (await runtime.find(agentId)).turn(openTurnId).result;
    }
    expect(await accountOf(runtime, "background:desk#1")).toMatchObject({ reserved: { tokens: 0 }, activeCount: 0 });
    gate.open("late");
  });
});

/** Waits for a turn that the agent starts by itself, and returns its result. */
async function resultOfOwn(runtime: Runtime, agent: Agent, turnId: string) {
  for await (const event of runtime.follow(agent.agentId)) {
    if (event.type === "turn.started" && event.turnId === turnId) return await agent.turn(turnId).result;
  }
  throw new Error(`the agent started no turn ${turnId}`);
}

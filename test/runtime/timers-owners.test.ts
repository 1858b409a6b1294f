import { expect, it } from "vitest";
import { defineAgent, type Runtime, subagent } from "../../src/index.ts";
import { type FakeClock, scriptedModel } from "../../src/testing/index.ts";
import { loopTurns } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, type Gate } from "../support/turn-probes.ts";

const aWhile = 50;

async function pass(clock: FakeClock, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 250) {
    clock.advance(Math.min(250, left));
    await loopTurns(3);
  }
}

/** A lead that calls one child per gate. Each child waits at its gate. */
function teamOf(gates: readonly Gate<string>[], maxSeconds: number) {
  const child = defineAgent({
    name: "child",
    model: scriptedModel(async (request, { signal }) => {
      const place = Number(request.messages.findLast(({ role }) => role === "user")?.content);
      return (await gates[place]?.pass(signal)) ?? "";
    }),
  });
  const calls = gates.map((_gate, index) => ({ name: "child", arguments: { input: String(index) } }));
  const model = scriptedModel(({ messages }) => (messages.at(-1)?.role === "user" ? calling(...calls) : "all done"));
  return defineAgent({ name: "lead", model, tools: [subagent(child)], budget: { maxSeconds } });
}

async function turnAccountOf(runtime: Runtime) {
  return (await runtime.accounts("t")).find(({ turnId }) => turnId === "t#1");
}

async function childrenOf(runtime: Runtime) {
  return (await runtime.list()).flatMap(({ agentId }) => (agentId === "t" ? [] : [agentId]));
}

describeRuntimes("working time across agents and processes", (stage) => {
  it("counts overlapping work once", async () => {
    const gates = [createGate<string>(), createGate<string>(), createGate<string>()];
    const runtime = await stage().open({ agents: [teamOf(gates, 60)] });
    const agent = await runtime.agent("lead", { agentId: "t" });
    await agent.start();
    const turn = agent.executeTurn("go");
    await Promise.all(gates.map((gate) => gate.reached()));
    for (const [index, gate] of gates.entries()) {
      await pass(stage().clock, 5_000);
      gate.open(`child ${index}`);
      await loopTurns(aWhile);
    }
    expect(await turn.result).toMatchObject({ status: "completed", text: "all done" });
    expect((await turnAccountOf(runtime))?.used.activeMs).toBe(15_000);
    const own = (await runtime.accounts("t")).filter(({ agentId, turnId }) => agentId !== "t" && turnId !== null);
    expect(own.map(({ used }) => used.activeMs).sort((a, b) => a - b)).toEqual([5_000, 10_000, 15_000]);
  });

  /** The child runs in a process that dies at 5 s; the lead runs in another that survives. */
  const openApart = async (maxSeconds: number) => {
    const lost = createGate<string>();
    const first = await stage().openProcess({ agents: [teamOf([lost], maxSeconds)] });
    const lead = await first.runtime.agent("lead", { agentId: "t" });
    await lead.start();
    lead.executeTurn("go").result.catch(() => undefined);
    await lost.reached();
    first.kill();
    stage().expireLeases();
    const [dies, lives] = [createGate<string>(), createGate<string>()];
    const second = await stage().openProcess({ agents: [teamOf([dies], maxSeconds)] });
    const [childId = ""] = await childrenOf(second.runtime);
    await (await second.runtime.find(childId)).start();
    await dies.reached();
    const runtime = await stage().open({ agents: [teamOf([lives], maxSeconds)] });
    const agent = await runtime.find("t");
    await agent.start();
    return { runtime, agent, second, lives, dies };
  };

  it("does not count time without work: a child whose process died does not use up its parent's time", async () => {
    const { runtime, agent, second, lives } = await openApart(60);
    const before = (await turnAccountOf(runtime))?.used.activeMs ?? 0;
    await pass(stage().clock, 5_000);
    second.kill();
    // By the clock the limit is reached; the child is recovered before the limit is applied.
    await pass(stage().clock, 58_000);
    await lives.reached();
    expect(agent.state.status).toBe("busy");
    await pass(stage().clock, 5_000);
    lives.open("found again");
    expect(await agent.turn("t#1").result).toMatchObject({ status: "completed", text: "all done" });
    const used = (await turnAccountOf(runtime))?.used.activeMs ?? 0;
    expect(used - before).toBeGreaterThanOrEqual(5_000);
    expect(used).toBeLessThanOrEqual(60_000);
  });

  it("keeps counting while another child works: the process that recovers a lost child refunds no time", async () => {
    const gates = [createGate<string>(), createGate<string>()];
    const first = await stage().openProcess({ agents: [teamOf(gates, 600)] });
    const lead = await first.runtime.agent("lead", { agentId: "t" });
    await lead.start();
    lead.executeTurn("go").result.catch(() => undefined);
    await Promise.all(gates.map((gate) => gate.reached()));
    first.kill();
    stage().expireLeases();
    const again = [createGate<string>(), createGate<string>()];
    const second = await stage().openProcess({ agents: [teamOf(again, 600)] });
    const runtime = await stage().open({ agents: [teamOf(again, 600)] });
    const [one = "", other = ""] = await childrenOf(runtime);
    await (await second.runtime.find(one)).start();
    await (await runtime.find(other)).start();
    await (await runtime.find("t")).start();
    await Promise.all(again.map((gate) => gate.reached()));
    const before = (await turnAccountOf(runtime))?.activeSince;
    second.kill();
    const killedAt = stage().clock.elapsed();
    await pass(stage().clock, 100_000);
    // The process that owns the tree has recovered it already, except in memory, where no process outlives another.
    await runtime.recover();
    const own = (await runtime.accounts("t")).find(({ agentId, turnId }) => agentId === one && turnId !== null);
    expect(own?.activeSince).toBeGreaterThan(killedAt);
    expect(await turnAccountOf(runtime)).toMatchObject({ activeSince: before });
    for (const gate of again) gate.open("done");
  });
});

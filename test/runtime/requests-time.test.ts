import { expect, it } from "vitest";
import { type Budget, defineAgent, subagent } from "../../src/index.ts";
import { type FakeClock, scriptedModel } from "../../src/testing/index.ts";
import { openTill, payment, requestOf, startAgent } from "../support/deciding.ts";
import { loopTurns, orderFault, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, type Gate } from "../support/turn-probes.ts";

const hour = 60 * 60 * 1000;

/** Advances the clock in steps, so that everything due runs before more time passes. */
async function pass(clock: FakeClock, ms: number, stepMs = 250): Promise<void> {
  for (let left = ms; left > 0; left -= stepMs) {
    clock.advance(Math.min(stepMs, left));
    await loopTurns(3);
  }
}

describeRuntimes("time while a turn waits for a decision", (stage) => {
  const open = async (budget: Budget, gate?: Gate<string>) => {
    const till = openTill();
    const model = scriptedModel(({ messages }, { signal }) =>
      messages.at(-1)?.role === "user" ? calling(payment(5)) : (gate?.pass(signal) ?? "the end"),
    );
    const runtime = await stage().open({ agents: [defineAgent({ name: "clerk", model, tools: [till.tool] })] });
    const agent = await startAgent(runtime, "clerk", "c");
    const turn = agent.executeTurn("pay", { budget });
    return { runtime, till, agent, turn, request: await requestOf(turn) };
  };

  it("maxSeconds does not count it: people may take hours", async () => {
    const gate = createGate<string>();
    const { runtime, agent, turn, till, request } = await open({ maxSeconds: 10 }, gate);
    await pass(stage().clock, 2 * hour, hour / 12);
    expect(await agent.requests()).toEqual([request]);
    expect(agent.state.status).toBe("busy");
    await runtime.decide(request.requestId, { verdict: "approved" });
    await gate.reached();
    // Working time before and after the wait is added up.
    await pass(stage().clock, 9_000);
    expect(agent.state.status).toBe("busy");
    await pass(stage().clock, 1_500);
    expect(await turn.result).toMatchObject({ status: "stopped", signal: { limit: "maxActiveMs" } });
    expect(till.paid).toHaveLength(1);
  });

  it("a deadline counts it: it closes the request and ends the turn", async () => {
    const deadline = stage().clock.now() + 60_000;
    const { runtime, agent, turn, till, request } = await open({ deadline });
    await pass(stage().clock, 59_000);
    expect(await agent.requests()).toEqual([request]);
    await pass(stage().clock, 1_500);
    expect(await turn.result).toMatchObject({
      status: "stopped",
      stopReason: "time_limit",
      signal: { limit: "deadlineAt" },
    });
    await expect(runtime.decide(request.requestId, { verdict: "approved" })).rejects.toMatchObject({
      details: { status: "closed" },
    });
    expect((await toolTextsOf(agent))[0]).toMatch(/^Interrupted: /);
    expect(orderFault(await agent.getMessages())).toBeUndefined();
    expect(till.paid).toEqual([]);
    expect(agent.state.status).toBe("ready");
  });

  it("maxSeconds counts it neither for a lead whose subagent waits nor for the subagent", async () => {
    const till = openTill();
    const aide = defineAgent({
      name: "aide",
      model: scriptedModel([calling(payment(5)), "done"]),
      tools: [till.tool],
      budget: { maxSeconds: 5 },
    });
    const lead = defineAgent({
      name: "lead",
      model: scriptedModel([calling({ name: "aide", arguments: { input: "go" } }), "the end"]),
      tools: [subagent(aide, { budget: { maxSeconds: 5 } })],
      budget: { maxSeconds: 10 },
    });
    const runtime = await stage().open({ agents: [lead] });
    const agent = await startAgent(runtime, "lead", "l");
    const turn = agent.executeTurn("go");
    const { requestId } = await requestOf(turn);
    await pass(stage().clock, hour, hour / 12);
    await runtime.decide(requestId, { verdict: "approved" });
    expect(await turn.result).toMatchObject({ status: "completed", text: "the end" });
    expect(till.paid).toHaveLength(1);
  });

  it("a restart during the wait adds no working time", async () => {
    const till = openTill();
    const clerk = () =>
      defineAgent({
        name: "clerk",
        model: scriptedModel(({ messages }) => (messages.at(-1)?.role === "user" ? calling(payment(5)) : "the end")),
        tools: [till.tool],
        budget: { maxSeconds: 10 },
      });
    const doomed = await stage().openProcess({ agents: [clerk()] });
    const before = await startAgent(doomed.runtime, "clerk", "c");
    const { requestId } = await requestOf(before.executeTurn("pay"));
    doomed.kill();
    await pass(stage().clock, hour, hour / 12);
    const runtime = await stage().open({ agents: [clerk()] });
    await runtime.recover();
    const agent = await runtime.find("c");
    await pass(stage().clock, 60_000, 1_000);
    await runtime.decide(requestId, { verdict: "approved" });
    expect(await agent.turn("c#1").result).toMatchObject({ status: "completed", text: "the end" });
    const [account] = await runtime.accounts("c");
    expect(account?.used.activeMs).toBeLessThan(1_000);
  });
});

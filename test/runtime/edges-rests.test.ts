import { expect, it } from "vitest";
import { defineAgent, type HookContext } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { openTill, payment, startAgent } from "../support/deciding.ts";
import { loopTurns } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, eventsOfTurn, typesOf } from "../support/turn-probes.ts";

const side = { messages: [{ role: "user", content: "side" }] } as const;

describeRuntimes("turns at rest", (stage) => {
  it("L8: settled resolves for a pause that began before the call", async () => {
    const gate = createGate();
    const model = scriptedModel(async () => {
      await gate.pass();
      return "the end";
    });
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model })] });
    const agent = await startAgent(runtime, "worker", "w");
    const turn = agent.executeTurn("go");
    await gate.reached();
    await agent.pause({ now: true });
    expect(await turn.settled).toEqual({ status: "waiting", turnId: "w#1", reason: "paused" });
    gate.open();
    await agent.resume();
    expect(await agent.turn("w#1").settled).toMatchObject({ status: "completed", text: "the end" });
  });

  it("a request that was opened during a pause is waited for after it, and the stream reports the wait", async () => {
    const gate = createGate();
    const till = openTill({
      needsApproval: async () => {
        await gate.pass();
        return true;
      },
    });
    const model = scriptedModel([calling(payment(1)), "the end"]);
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model, tools: [till.tool] })] });
    const agent = await startAgent(runtime, "worker", "w");
    const turn = agent.executeTurn("go");
    const events = eventsOfTurn(turn);
    await gate.reached();
    await loopTurns(5);
    await agent.pause();
    gate.open();
    await loopTurns(20);
    await agent.resume();
    expect(await turn.settled).toMatchObject({ status: "waiting", reason: "request", requests: [{ name: "pay" }] });
    await runtime.decide("w#1:1:0:1", { verdict: "approved" });
    expect((await turn.result).status).toBe("completed");
    const types = typesOf(await events);
    expect(types.slice(types.indexOf("request.opened"))).toContain("turn.waiting");
    expect((await runtime.accounts("w")).map(({ activeCount }) => activeCount)).toEqual([0]);
  });
});

describeRuntimes("agents that were shut down during a turn", (stage) => {
  const started = async (beforeLlm: (run: HookContext) => Promise<unknown>) => {
    const hooks = { beforeLlm: async (_draft: unknown, run: HookContext) => void (await beforeLlm(run)) };
    const worker = defineAgent({ name: "worker", model: scriptedModel("the end"), hooks });
    const runtime = await stage().open({ agents: [worker] });
    return await startAgent(runtime, "worker", "w");
  };

  it("L6: their code that still runs does not restart them", async () => {
    const gate = createGate();
    const told: string[] = [];
    const agent = await started(async (run) => {
      await gate.pass();
      await run.generate(side).catch((error: Error) => told.push(error.name));
    });
    agent.executeTurn("go");
    await gate.reached();
    await loopTurns(5);
    await agent.shutdown();
    gate.open();
    await loopTurns(30);
    expect(agent.state.status).toBe("shutdown");
    expect(told).toEqual(["LeaseLostError"]);
    await agent.start();
    expect((await agent.turn("w#1").result).text).toBe("the end");
  });

  it("L6: clear() is refused and does not continue the turn", async () => {
    const gate = createGate();
    const agent = await started(() => gate.pass());
    agent.executeTurn("go");
    await gate.reached();
    await loopTurns(5);
    await agent.shutdown();
    await expect(agent.clear()).rejects.toThrow('agent "w" is busy with turn w#1');
    await loopTurns(10);
    expect(agent.state.status).toBe("shutdown");
    expect(gate.count).toBe(1);
    gate.open();
    await agent.start();
    expect((await agent.turn("w#1").result).text).toBe("the end");
  });
});

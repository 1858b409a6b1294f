import { expect, it } from "vitest";
import { z } from "zod";
import { AgentStopError, defineAgent, defineTool } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { loopTurns, orderFault } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

const look = (execute: () => unknown) =>
  defineTool({ name: "look", description: "Looks.", parameters: z.object({}), effect: "none", execute });

describeRuntimes("after a crash", (stage) => {
  it("L6: a pause after a crash stops the recovered work: the agent is paused and continues after resume()", async () => {
    const gate = createGate();
    let runs = 0;
    const worker = (isDoomed: boolean) =>
      defineAgent({
        name: "worker",
        model: scriptedModel(isDoomed ? [calling("look")] : ["done"]),
        tools: [
          look(async () => {
            runs += 1;
            await gate.pass();
            return isDoomed ? await Promise.withResolvers<never>().promise : "seen";
          }),
        ],
      });
    const doomed = await stage().openProcess({ agents: [worker(true)] });
    const before = await doomed.runtime.agent("worker", { agentId: "w" });
    await before.start();
    before.executeTurn("go").result.catch(() => undefined);
    await gate.reached();
    doomed.kill();
    gate.open();
    await loopTurns(5);
    stage().expireLeases();
    const survivor = await stage().open({ agents: [worker(false)] });
    const agent = await survivor.find("w");
    await agent.pause();
    await agent.start();
    await loopTurns(20);
    expect(agent.state).toMatchObject({ status: "paused", openTurnId: "w#1" });
    expect(runs).toBe(1);
    await agent.resume();
    expect(await agent.turn("w#1").result).toMatchObject({ status: "completed", text: "done", toolCalls: 1 });
    expect(runs).toBe(2);
    expect(orderFault(await agent.getMessages())).toBeUndefined();
  });

  it("F15: a side call that is not repeated is settled in full at the end of the turn and does not stay reserved", async () => {
    const gate = createGate<string>();
    const worker = (generates: boolean) =>
      defineAgent({
        name: "worker",
        model: scriptedModel(({ tools }) => (tools ? calling("look") : gate.pass())),
        tools: [
          look(() => {
            throw new AgentStopError("seen enough");
          }),
        ],
        maxOutputTokens: 300,
        hooks: {
          async beforeEachTool(_draft, run) {
            if (generates) await run.generate({ messages: [{ role: "user", content: "Judge." }] });
          },
        },
      });
    const doomed = await stage().openProcess({ agents: [worker(true)] });
    const before = await doomed.runtime.agent("worker", { agentId: "w" });
    await before.start();
    before.executeTurn("go").result.catch(() => undefined);
    await gate.reached();
    doomed.kill();
    gate.open("too late");
    await loopTurns(5);
    stage().expireLeases();
    const survivor = await stage().open({ agents: [worker(false)] });
    const agent = await survivor.find("w");
    await agent.start();
    expect(await agent.turn("w#1").result).toMatchObject({ status: "stopped", stopReason: "stop_requested" });
    const [account] = await survivor.accounts("w");
    expect(account).toMatchObject({ reserved: { tokens: 0 }, activeCount: 0 });
    expect(account?.unconfirmed.tokens).toBeGreaterThanOrEqual(300);
  });
});

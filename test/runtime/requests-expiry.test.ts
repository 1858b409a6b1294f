import { expect, it } from "vitest";
import { z } from "zod";
import { askUser, clientTool, defineAgent, defineTool, RequestConflictError } from "../../src/index.ts";
import { type FakeClock, type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { openTill, payment, requestOf, requestsOf, startAgent } from "../support/deciding.ts";
import { entriesOf, entriesOfType, loopTurns, orderFault, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, eventsOfTurn, nextEvent } from "../support/turn-probes.ts";

const minute = 60_000;
const expired = "The request has expired without a decision.";

/** Advances the clock in steps of 250 ms, the interval of the alarms, so that everything due runs before more time passes. */
async function pass(clock: FakeClock, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 250) {
    clock.advance(Math.min(250, left));
    await loopTurns(3);
  }
}

/** The same model script in every process. */
const payOnce: ModelScript = ({ messages }) => (messages.at(-1)?.role === "user" ? calling(payment(5)) : "the end");

const clerkWith = (till = openTill({ approvalExpiresAfterMs: minute })) =>
  defineAgent({ name: "clerk", model: scriptedModel(payOnce), tools: [till.tool] });

describeRuntimes("the expiry of a request", (stage) => {
  it("rejects the call at its time and not before, with an error for the model", async () => {
    const till = openTill({ approvalExpiresAfterMs: minute });
    const runtime = await stage().open({ agents: [clerkWith(till)] });
    const agent = await startAgent(runtime, "clerk", "c");
    const turn = agent.executeTurn("pay");
    const events = eventsOfTurn(turn);
    const request = await requestOf(turn);
    expect(request.expiresAt).toBe(stage().clock.now() + minute);
    await pass(stage().clock, minute - 1);
    expect(await agent.requests()).toEqual([request]);
    await pass(stage().clock, 251);
    expect(await turn.result).toMatchObject({ status: "completed", text: "the end" });
    expect(await toolTextsOf(agent)).toEqual([expired]);
    expect(till.paid).toEqual([]);
    expect((await events).filter(({ type }) => type === "request.decided")).toMatchObject([
      { requestId: request.requestId, verdict: "expired", by: null, reason: null },
    ]);
    await expect(runtime.decide(request.requestId, { verdict: "approved" })).rejects.toThrow(
      'request "c#1:1:0:1" was expired',
    );
  });

  it("a request that was decided in time no longer expires", async () => {
    const till = openTill({ approvalExpiresAfterMs: minute });
    const runtime = await stage().open({ agents: [clerkWith(till)] });
    const agent = await startAgent(runtime, "clerk", "c");
    const turn = agent.executeTurn("pay");
    const { requestId } = await requestOf(turn);
    await pass(stage().clock, minute - 1);
    await runtime.decide(requestId, { verdict: "approved" });
    await turn.result;
    const before = await entriesOf(stage().look(), "c");
    await pass(stage().clock, 2 * minute);
    expect(await entriesOf(stage().look(), "c")).toEqual(before);
    expect(await stage().look().nextTimerAt()).toBeUndefined();
    expect(till.paid).toHaveLength(1);
  });

  it("client tools and questions expire too, and a request without an expiry keeps waiting", async () => {
    const tools = [
      clientTool({ name: "pick", description: "Picks.", parameters: z.object({}), expiresAfterMs: minute }),
      askUser({ expiresAfterMs: 2 * minute }),
      clientTool({ name: "wait", description: "Waits.", parameters: z.object({}) }),
    ];
    const question = { name: "ask_user", arguments: { question: "Tea?" } };
    const model = scriptedModel([calling("pick", question, "wait"), "the end"]);
    const runtime = await stage().open({ agents: [defineAgent({ name: "clerk", model, tools })] });
    const agent = await startAgent(runtime, "clerk", "c");
    const turn = agent.executeTurn("go");
    expect(await requestsOf(turn)).toHaveLength(3);
    for (const left of [2, 1]) {
      const decided = nextEvent(runtime, ({ type }) => type === "request.decided");
      await pass(stage().clock, minute + 250);
      await decided;
      expect(await requestsOf(agent.turn("c#1"))).toHaveLength(left);
    }
    await pass(stage().clock, 5 * minute);
    const { requestId, name } = await requestOf(agent.turn("c#1"));
    expect(name).toBe("wait");
    await runtime.decide(requestId, { verdict: "answered", result: "done" });
    expect((await turn.result).status).toBe("completed");
    expect(await toolTextsOf(agent)).toEqual([expired, expired, "done"]);
    expect(orderFault(await agent.getMessages())).toBeUndefined();
  });

  it("after the expiry an approval is refused with an error, even if the alarm has not fired yet", async () => {
    const till = openTill({ approvalExpiresAfterMs: minute });
    const doomed = await stage().openProcess({ agents: [clerkWith(till)] });
    const before = await startAgent(doomed.runtime, "clerk", "c");
    const { requestId } = await requestOf(before.executeTurn("pay"));
    doomed.kill();
    stage().clock.advance(minute);
    const runtime = await stage().open({ agents: [clerkWith(till)] });
    const approving = runtime.decide(requestId, { verdict: "approved", by: "grace" });
    await expect(approving).rejects.toThrow(RequestConflictError);
    await expect(approving).rejects.toMatchObject({ details: { verdict: "expired", by: null } });
    stage().expireLeases();
    await runtime.recover();
    const agent = await runtime.find("c");
    await agent.turn("c#1").result;
    expect(await toolTextsOf(agent)).toEqual([expired]);
    expect(till.paid).toEqual([]);
  });

  it("happens at the same time after a restart and without an owner: any living process fires it", async () => {
    const till = openTill({ approvalExpiresAfterMs: minute });
    const doomed = await stage().openProcess({ agents: [clerkWith(till)] });
    const before = await startAgent(doomed.runtime, "clerk", "c");
    await before.executeTurn("pay").settled;
    doomed.kill();
    stage().clock.advance(minute / 2);
    const till2 = openTill();
    // It has another definition: it cannot run the agent, but still expires the request.
    const onlooker = await stage().open({ agents: [defineAgent({ name: "other", model: scriptedModel("") })] });
    const dueAt = stage().clock.now() + minute / 2;
    await pass(stage().clock, minute / 2 + 250);
    expect(await onlooker.requests({ agentId: "c" })).toEqual([]);
    const [request] = await onlooker.requests({ status: "decided" });
    expect(request).toMatchObject({ expiresAt: dueAt, decision: { verdict: "expired", by: null } });
    expect((request?.decidedAt ?? 0) - dueAt).toBeLessThanOrEqual(250);
    expect(await entriesOfType(stage().look(), "c", "request.decided")).toEqual([]);
    const runtime = await stage().open({ agents: [clerkWith(till2)] });
    const agent = await runtime.find("c");
    await agent.start();
    expect((await agent.turn("c#1").result).status).toBe("completed");
    expect(await toolTextsOf(agent)).toEqual([expired]);
    expect([...till.paid, ...till2.paid]).toEqual([]);
  });

  it("of an agent that was shut down is processed at its next start", async () => {
    const till = openTill({ approvalExpiresAfterMs: minute });
    const runtime = await stage().open({ agents: [clerkWith(till)] });
    const agent = await startAgent(runtime, "clerk", "c");
    const turn = agent.executeTurn("pay");
    await turn.settled;
    await agent.shutdown();
    await pass(stage().clock, minute + 250);
    expect(agent.state.status).toBe("shutdown");
    expect(await runtime.requests({ status: "decided" })).toMatchObject([{ decision: { verdict: "expired" } }]);
    await agent.start();
    expect((await turn.result).status).toBe("completed");
    expect(await toolTextsOf(agent)).toEqual([expired]);
  });

  it("a turn that ends removes the alarms of its requests", async () => {
    const till = openTill({ approvalExpiresAfterMs: minute });
    const noop = defineTool({ name: "noop", description: "-", parameters: z.object({}), execute: () => "" });
    const model = scriptedModel([calling(payment(5), "noop")]);
    const clerk = defineAgent({ name: "clerk", model, tools: [till.tool, noop] });
    const runtime = await stage().open({ agents: [clerk] });
    const agent = await startAgent(runtime, "clerk", "c");
    const turn = agent.executeTurn("pay");
    await turn.settled;
    await turn.abort();
    expect((await turn.result).status).toBe("stopped");
    expect(await stage().look().nextTimerAt()).toBeUndefined();
    await pass(stage().clock, minute + 250);
    expect(await runtime.requests({ status: "closed" })).toHaveLength(1);
    expect(agent.state.status).toBe("ready");
  });
});

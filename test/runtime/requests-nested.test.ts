import { expect, it } from "vitest";
import { z } from "zod";
import { type Agent, type AgentDefinition, defineAgent, defineTool, type Runtime, subagent } from "../../src/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { openTill, payment, requestOf, requestsOf, startAgent, type Till } from "../support/deciding.ts";
import { elapse, loopTurns, orderFault, toolTexts } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, eventsOfTurn, type Gate, nextEvent } from "../support/turn-probes.ts";

/** Makes these calls for a user message, and ends the turn after their results. */
const once =
  (...calls: Parameters<typeof calling>): ModelScript =>
  ({ messages }) =>
    messages.at(-1)?.role === "user" ? calling(...calls) : toolTexts(messages).join(" | ");

const child = (name: string) => ({ name, arguments: { input: "go" } });

/** A lead, its clerk and the clerk's aide: each makes a payment that needs approval. */
function team(till: Till, slow?: Gate<void>): AgentDefinition {
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: z.object({}),
    effect: "none",
    execute: async (_args, run) => {
      await slow?.pass(run.signal);
      return "seen";
    },
  });
  const aide = defineAgent({ name: "aide", model: scriptedModel(once(payment(3))), tools: [till.tool] });
  const clerk = defineAgent({
    name: "clerk",
    model: scriptedModel(once(payment(2), child("aide"))),
    tools: [till.tool, subagent(aide)],
  });
  return defineAgent({
    name: "lead",
    model: scriptedModel(once(payment(1), child("clerk"), "look")),
    tools: [till.tool, look, subagent(clerk)],
  });
}

/** Resolves when no turn of any agent is open. */
async function settledTree(runtime: Runtime): Promise<void> {
  while ((await runtime.list()).some(({ openTurnId }) => openTurnId !== null)) await loopTurns(1);
}

describeRuntimes("requests of subagents", (stage) => {
  const open = async (slow?: Gate<void>): Promise<{ runtime: Runtime; agent: Agent; till: Till }> => {
    const till = openTill();
    const runtime = await stage().open({ agents: [team(till, slow)] });
    return { runtime, till, agent: await startAgent(runtime, "lead", "l") };
  };

  it("the root's turn returns all requests of its tree, and settles again after each decision", async () => {
    const { runtime, agent, till } = await open();
    const turn = agent.executeTurn("go");
    const requests = await requestsOf(turn);
    expect(requests.map(({ agentName, rootAgentId, arguments: args }) => [agentName, rootAgentId, args])).toEqual(
      expect.arrayContaining([
        ["lead", "l", { to: "Ada", amount: 1 }],
        ["clerk", "l", { to: "Ada", amount: 2 }],
        ["aide", "l", { to: "Ada", amount: 3 }],
      ]),
    );
    expect(requests).toHaveLength(3);
    expect(await agent.requests()).toEqual(requests);
    const byName = (name: string) => requests.find(({ agentName }) => agentName === name)?.requestId ?? "";
    await runtime.decide(byName("lead"), { verdict: "approved" });
    let left = await requestsOf(agent.turn("l#1"));
    expect(left.map(({ agentName }) => agentName).toSorted()).toEqual(["aide", "clerk"]);
    await runtime.decide(byName("aide"), { verdict: "rejected", reason: "no" });
    left = await requestsOf(agent.turn("l#1"));
    expect(left.map(({ agentName }) => agentName)).toEqual(["clerk"]);
    await runtime.decide(byName("clerk"), { verdict: "approved" });
    expect(await agent.turn("l#1").settled).toMatchObject({
      status: "completed",
      text: "paid 1 to Ada | paid 2 to Ada | Rejected by user: no | seen",
    });
    expect((await turn.result).status).toBe("completed");
    expect(till.paid).toEqual([
      { to: "Ada", amount: 1 },
      { to: "Ada", amount: 2 },
    ]);
    expect(orderFault(await agent.getMessages())).toBeUndefined();
  });

  it("appear on the root's stream with the agent that asks", async () => {
    const { runtime, agent } = await open();
    const turn = agent.executeTurn("go");
    const events = eventsOfTurn(turn);
    for (const { requestId } of await requestsOf(turn))
      await runtime.decide(requestId, { verdict: "approved", by: "grace" });
    await turn.result;
    for (const type of ["request.opened", "request.decided"]) {
      const told = (await events).filter((event) => event.type === type);
      expect(told.map(({ agentName, rootAgentId }) => `${agentName} of ${rootAgentId}`).toSorted()).toEqual([
        "aide of l",
        "clerk of l",
        "lead of l",
      ]);
      for (const { agentId, turnId } of told) expect(turnId).toBe(`${agentId}#1`);
    }
  });

  it("agent.requests() of a subagent returns its own and those below, not those above", async () => {
    const { runtime, agent } = await open();
    const turn = agent.executeTurn("go");
    const requests = await requestsOf(turn);
    const clerk = requests.find(({ agentName }) => agentName === "clerk");
    if (!clerk) throw new Error("expected a request of the clerk");
    const handle = await runtime.find(clerk.agentId);
    const below = await handle.requests();
    expect(below.map(({ agentName }) => agentName).toSorted()).toEqual(["aide", "clerk"]);
    expect((await requestsOf(handle.turn(clerk.turnId))).length).toBe(2);
    for (const { requestId } of requests) await runtime.decide(requestId, { verdict: "rejected" });
    expect((await turn.result).status).toBe("completed");
  });

  it("the root's turn settles if its own work ends after its subagents started to wait", async () => {
    const slow = createGate();
    const { runtime, agent } = await open(slow);
    const aideWaits = nextEvent(runtime, ({ type, agentName }) => type === "turn.waiting" && agentName === "aide");
    const turn = agent.executeTurn("go");
    const rest = turn.settled;
    await slow.reached();
    await aideWaits;
    await loopTurns(50);
    slow.open();
    expect(await rest).toMatchObject({ status: "waiting", reason: "request", requests: { length: 3 } });
    await turn.abort();
    expect((await turn.result).status).toBe("stopped");
    // Subagents end on their own, each in its own commit.
    await expect.poll(() => agent.requests(), { timeout: 30_000 }).toEqual([]);
  });

  it("a lead that only waits for a subagent's request settles too, even if its tool ends last", async () => {
    const slow = createGate();
    const till = openTill();
    const look = defineTool({
      name: "look",
      description: "Looks.",
      parameters: z.object({}),
      effect: "none",
      execute: (_args, run) => slow.pass(run.signal),
    });
    const aide = defineAgent({ name: "aide", model: scriptedModel(once(payment(3))), tools: [till.tool] });
    const model = scriptedModel(once(child("aide"), "look"));
    const lead = defineAgent({ name: "lead", model, tools: [look, subagent(aide)] });
    const runtime = await stage().open({ agents: [lead] });
    const agent = await startAgent(runtime, "lead", "l");
    const waits = nextEvent(runtime, ({ type }) => type === "turn.waiting");
    const turn = agent.executeTurn("go");
    const rest = turn.settled;
    await slow.reached();
    await waits;
    await loopTurns(50);
    slow.open();
    expect(await rest).toMatchObject({ status: "waiting", requests: [{ agentName: "aide" }] });
    const { requestId } = await requestOf(agent.turn("l#1"));
    await runtime.decide(requestId, { verdict: "approved" });
    expect((await turn.result).text).toBe("paid 3 to Ada | ");
  });

  it("an abort of the root closes all of them, and nothing runs", async () => {
    const { runtime, agent, till } = await open();
    const turn = agent.executeTurn("go");
    const requests = await requestsOf(turn);
    await agent.abort("enough");
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "user_requested" });
    await elapse(stage().clock, settledTree(runtime));
    for (const { requestId } of requests) {
      await expect(runtime.decide(requestId, { verdict: "approved" })).rejects.toMatchObject({
        details: { status: "closed" },
      });
    }
    expect(till.paid).toEqual([]);
  });

  it("can be decided in another process after a restart", async () => {
    const till = openTill();
    const doomed = await stage().openProcess({ agents: [team(till)] });
    const before = await startAgent(doomed.runtime, "lead", "l");
    const requests = await requestsOf(before.executeTurn("go"));
    doomed.kill();
    stage().expireLeases();
    const runtime = await stage().open({ agents: [team(till)] });
    await runtime.recover();
    const agent = await runtime.find("l");
    const turn = agent.turn("l#1");
    expect(await requestsOf(turn)).toEqual(requests);
    for (const { requestId } of requests) await runtime.decide(requestId, { verdict: "approved" });
    expect((await turn.result).text).toBe("paid 1 to Ada | paid 2 to Ada | paid 3 to Ada | seen");
    expect(till.paid).toHaveLength(3);
  });
});

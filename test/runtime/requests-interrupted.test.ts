import { expect, it } from "vitest";
import { z } from "zod";
import { AgentBusyError, clientTool, defineAgent, subagent, textOf } from "../../src/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { openTill, payment, requestOf, requestsOf, startAgent } from "../support/deciding.ts";
import { elapse, loopTurns, orderFault, toolTexts, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling } from "../support/turn-probes.ts";

const pick = clientTool({ name: "pick", description: "Picks.", parameters: z.object({}) });

/** Asks for a payment and a pick if the input is "pay", else repeats the input. */
const script: ModelScript = ({ messages }) => {
  const last = messages.at(-1);
  const heard = textOf(last?.content ?? "");
  if (last?.role === "user" && heard === "pay") return calling(payment(5), "pick");
  return last?.role === "tool" ? toolTexts(messages).join(" | ") : `heard: ${heard}`;
};

describeRuntimes("while a turn waits for a decision", (stage) => {
  const open = async () => {
    const till = openTill();
    const model = scriptedModel(script);
    const runtime = await stage().open({ agents: [defineAgent({ name: "clerk", model, tools: [till.tool, pick] })] });
    const agent = await startAgent(runtime, "clerk", "c");
    const turn = agent.executeTurn("pay");
    const requests = await requestsOf(turn);
    return { runtime, till, model, agent, turn, ids: requests.map(({ requestId }) => requestId) };
  };

  it("another turn without ifBusy is refused and changes nothing", async () => {
    const { runtime, agent, turn, ids } = await open();
    const refused = agent.executeTurn("something else").result;
    await expect(refused).rejects.toThrow(AgentBusyError);
    await expect(refused).rejects.toMatchObject({ details: { openTurnId: "c#1" } });
    expect((await agent.requests()).map(({ requestId }) => requestId)).toEqual(ids);
    await runtime.decide(ids[0] ?? "", { verdict: "approved" });
    await runtime.decide(ids[1] ?? "", { verdict: "answered", result: "x" });
    expect((await turn.result).text).toBe("paid 5 to Ada | x");
  });

  it("a queued turn starts once the waiting turn has ended", async () => {
    const { runtime, agent, turn, ids } = await open();
    const next = agent.executeTurn("hello", { ifBusy: "queue" });
    expect(await next.id).toBe("c#2");
    await loopTurns(30);
    expect(await agent.requests()).toHaveLength(2);
    for (const requestId of ids) await runtime.decide(requestId, { verdict: "rejected" });
    expect((await turn.result).text).toBe("Rejected by user. | Rejected by user.");
    expect((await next.result).text).toBe("heard: hello");
  });

  it("L7: a superseding turn ends it: its calls are closed, nothing runs, and the new turn sees a legal history", async () => {
    const { runtime, agent, turn, till, model, ids } = await open();
    const next = agent.executeTurn("never mind", { ifBusy: "supersede", auth: { actorId: "ada" } });
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "user_requested" });
    expect(await next.result).toMatchObject({ status: "completed", text: "heard: never mind", turnId: "c#2" });
    expect(await toolTextsOf(agent)).toEqual([
      "Superseded by a new message of the user",
      "Superseded by a new message of the user",
    ]);
    expect(orderFault(model.calls[1]?.messages ?? [])).toBeUndefined();
    expect(orderFault(await agent.getMessages())).toBeUndefined();
    expect(model.calls).toHaveLength(2);
    for (const requestId of ids) {
      await expect(runtime.decide(requestId, { verdict: "rejected" })).rejects.toMatchObject({
        details: { status: "closed" },
      });
    }
    expect(till.paid).toEqual([]);
    expect(agent.state).toMatchObject({ status: "ready", turnCount: 2 });
  });

  it("an abort closes its requests, and the agent accepts the next turn", async () => {
    const { runtime, agent, turn, till, ids } = await open();
    await turn.abort("enough");
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "user_requested" });
    expect(await toolTextsOf(agent)).toEqual(["Interrupted by user", "Interrupted by user"]);
    for (const requestId of ids) {
      await expect(runtime.decide(requestId, { verdict: "rejected" })).rejects.toMatchObject({
        details: { status: "closed" },
      });
    }
    expect((await agent.executeTurn("hello").result).text).toBe("heard: hello");
    expect(till.paid).toEqual([]);
  });

  it("an abort and an approval at the same moment: the request is closed or runs once, and the turn ends", async () => {
    const { runtime, agent, turn, till, ids } = await open();
    const [approved] = await Promise.allSettled([
      runtime.decide(ids[0] ?? "", { verdict: "approved" }),
      turn.abort("enough"),
    ]);
    expect((await turn.result).status).toBe("stopped");
    await loopTurns(30);
    const stored = (await runtime.requests({ status: "decided" })).map(({ requestId }) => requestId);
    expect(stored).toEqual(approved?.status === "fulfilled" ? [ids[0]] : []);
    expect(till.paid.length).toBeLessThanOrEqual(stored.length);
    expect(orderFault(await agent.getMessages())).toBeUndefined();
    expect(await runtime.requests()).toEqual([]);
  });

  it("a pause delays approved calls until resume()", async () => {
    const { runtime, agent, turn, till, model, ids } = await open();
    await agent.pause();
    expect(agent.state.status).toBe("paused");
    expect(await agent.turn("c#1").settled).toMatchObject({ status: "waiting" });
    await runtime.decide(ids[0] ?? "", { verdict: "edited", arguments: { to: "Bob", amount: 2 } });
    await runtime.decide(ids[1] ?? "", { verdict: "answered", result: "x" });
    await loopTurns(50);
    expect(till.paid).toEqual([]);
    expect(model.calls).toHaveLength(1);
    expect(agent.state.status).toBe("paused");
    await agent.resume();
    expect(await turn.result).toMatchObject({ status: "completed", text: "paid 2 to Bob | x" });
    expect(till.paid).toEqual([{ to: "Bob", amount: 2 }]);
  });

  it("a pause and resume() do not change its requests", async () => {
    const { runtime, agent, turn, till, ids } = await open();
    await agent.pause();
    await agent.resume();
    await loopTurns(30);
    expect((await requestsOf(agent.turn("c#1"))).map(({ requestId }) => requestId)).toEqual(ids);
    for (const requestId of ids) await runtime.decide(requestId, { verdict: "rejected" });
    expect((await turn.result).status).toBe("completed");
    expect(till.paid).toEqual([]);
  });

  it("paused, decided, shut down and started again: it stays paused, and the decision is kept", async () => {
    const { runtime, agent, turn, till, ids } = await open();
    await agent.pause();
    await runtime.decide(ids[0] ?? "", { verdict: "approved" });
    await agent.shutdown();
    await runtime.decide(ids[1] ?? "", { verdict: "answered", result: "x" });
    await agent.start();
    await loopTurns(50);
    expect(agent.state.status).toBe("paused");
    expect(till.paid).toEqual([]);
    await agent.resume();
    expect((await turn.result).text).toBe("paid 5 to Ada | x");
    expect(till.paid).toHaveLength(1);
  });

  it("a paused waiting turn can be superseded too", async () => {
    const { agent, turn, till } = await open();
    await agent.pause();
    const next = agent.executeTurn("never mind", { ifBusy: "supersede" });
    expect((await turn.result).status).toBe("stopped");
    await agent.resume();
    expect((await next.result).text).toBe("heard: never mind");
    expect(till.paid).toEqual([]);
    expect(orderFault(await agent.getMessages())).toBeUndefined();
  });

  it("a turn that waits through its subagent is superseded with the subagent's turn", async () => {
    const till = openTill();
    const clerk = defineAgent({ name: "clerk", model: scriptedModel(() => calling(payment(5))), tools: [till.tool] });
    const model = scriptedModel(({ messages }) =>
      messages.length === 1 ? calling({ name: "clerk", arguments: { input: "go" } }) : "done",
    );
    const lead = defineAgent({ name: "lead", model, tools: [subagent(clerk)] });
    const runtime = await stage().open({ agents: [lead] });
    const agent = await startAgent(runtime, "lead", "l");
    const turn = agent.executeTurn("pay");
    const { requestId } = await requestOf(turn);
    const next = agent.executeTurn("never mind", { ifBusy: "supersede" });
    expect((await turn.result).status).toBe("stopped");
    expect((await next.result).text).toBe("done");
    const closed = async (): Promise<void> => {
      while ((await runtime.requests()).length > 0) await loopTurns(1);
    };
    await elapse(stage().clock, closed());
    await expect(runtime.decide(requestId, { verdict: "approved" })).rejects.toMatchObject({
      details: { status: "closed" },
    });
    expect(till.paid).toEqual([]);
    expect(toolTexts(model.calls[1]?.messages ?? [])).toEqual(["Superseded by a new message of the user"]);
  });
});

import { expect, it } from "vitest";
import { z } from "zod";
import { clientTool, defineAgent, defineTool, type Runtime } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { openTill, ordersOf, payment, requestsOf, startAgent } from "../support/deciding.ts";
import { entriesOfType, loopTurns, orderFault, toolTexts, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, type Gate } from "../support/turn-probes.ts";

const pick = clientTool({ name: "pick", description: "Picks a file.", parameters: z.object({}) });

type DecideIt = (runtime: Runtime) => Promise<unknown>;
const decisions: readonly { readonly callIndex: number; readonly told: string; readonly decide: DecideIt }[] = [
  { callIndex: 0, told: "paid 1 to Ada", decide: (runtime) => runtime.decide("c#1:1:0:1", { verdict: "approved" }) },
  {
    callIndex: 1,
    told: "Rejected by user: no",
    decide: (runtime) => runtime.decide("c#1:1:1:1", { verdict: "rejected", reason: "no" }),
  },
  {
    callIndex: 2,
    told: "paid 33 to Bob",
    decide: (runtime) => runtime.decide("c#1:1:2:1", { verdict: "edited", arguments: { to: "Bob", amount: 33 } }),
  },
  {
    callIndex: 3,
    told: "/tmp/a.txt",
    decide: (runtime) => runtime.decide("c#1:1:3:1", { verdict: "answered", result: "/tmp/a.txt" }),
  },
];

describeRuntimes("several requests of one turn", (stage) => {
  const open = async (gate?: Gate<void>) => {
    const till = openTill();
    const look = defineTool({
      name: "look",
      description: "Looks.",
      parameters: z.object({}),
      execute: async () => {
        await gate?.pass();
        return "seen";
      },
    });
    const model = scriptedModel([calling(payment(1), payment(2), payment(3), "pick", "look"), "the end"]);
    const clerk = defineAgent({ name: "clerk", model, tools: [till.tool, pick, look] });
    const runtime = await stage().open({ agents: [clerk] });
    return { runtime, till, model, agent: await startAgent(runtime, "clerk", "c") };
  };

  it.each(ordersOf([0, 1, 2, 3]))(
    "F22: in the order %i %i %i %i the turn waits for the remaining requests until none is left",
    async (...order) => {
      const { runtime, agent, till, model } = await open();
      const turn = agent.executeTurn("go");
      await turn.settled;
      for (const [done, index] of order.entries()) {
        const waits = (await requestsOf(agent.turn("c#1"))).map(({ callId }) => callId);
        const left = order.slice(done).toSorted((one, other) => one - other);
        expect(waits).toEqual(left.map((one) => `c#1:1:${one}`));
        expect(model.calls).toHaveLength(1);
        await decisions[index]?.decide(runtime);
      }
      expect(await turn.result).toMatchObject({ status: "completed", text: "the end", steps: 2 });
      expect(till.paid).toHaveLength(2);
      expect(till.paid).toEqual(
        expect.arrayContaining([
          { to: "Ada", amount: 1 },
          { to: "Bob", amount: 33 },
        ]),
      );
      const told = toolTexts(model.calls[1]?.messages ?? []);
      expect(told).toEqual([...decisions.map((one) => one.told), "seen"]);
      expect(orderFault(await agent.getMessages())).toBeUndefined();
      const settled = await entriesOfType(stage().look(), "c", "tool.settled");
      expect(new Set(settled.map(({ callId }) => callId)).size).toBe(5);
      expect(settled).toHaveLength(5);
    },
  );

  it("all can be decided at the same moment", async () => {
    const { runtime, agent, till } = await open();
    const turn = agent.executeTurn("go");
    await turn.settled;
    await Promise.all(decisions.map(({ decide }) => decide(runtime)));
    expect((await turn.result).status).toBe("completed");
    expect(till.paid).toHaveLength(2);
    expect((await toolTextsOf(agent)).toSorted()).toEqual([...decisions.map((one) => one.told), "seen"].toSorted());
  });

  it("a call that needs no decision runs meanwhile, and the turn settles once it has ended", async () => {
    const gate = createGate();
    const { runtime, agent } = await open(gate);
    const turn = agent.executeTurn("go");
    let isAtRest = false;
    const rest = turn.settled.then((settled) => {
      isAtRest = true;
      return settled;
    });
    await gate.reached();
    await loopTurns(50);
    expect(await agent.requests()).toHaveLength(4);
    expect(isAtRest).toBe(false);
    gate.open();
    expect(await rest).toMatchObject({ status: "waiting", reason: "request", requests: { length: 4 } });
    for (const { decide } of decisions) await decide(runtime);
    expect((await turn.result).status).toBe("completed");
  });

  it("a decision takes effect at once even while another call still runs", async () => {
    const gate = createGate();
    const { runtime, agent, till } = await open(gate);
    const turn = agent.executeTurn("go");
    await gate.reached();
    await loopTurns(20);
    for (const { decide } of decisions) await decide(runtime);
    await loopTurns(50);
    expect(till.paid).toHaveLength(2);
    gate.open();
    expect(await turn.settled).toMatchObject({ status: "completed" });
  });
});

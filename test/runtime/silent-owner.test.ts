import { expect, it } from "vitest";
import { z } from "zod";
import { AlreadyOwnedError, defineAgent, defineTool } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { elapse } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling } from "../support/turn-probes.ts";

const pay = defineTool({
  name: "pay",
  description: "Pays.",
  parameters: z.object({}),
  needsApproval: true,
  execute: () => "paid",
});
const clerk = () =>
  defineAgent({
    name: "clerk",
    model: scriptedModel(({ messages }) => (messages.at(-1)?.role === "tool" ? "done" : calling("pay"))),
    tools: [pay],
  });

describeRuntimes("an owner that was silent for longer than its lease", (stage) => {
  it("releases an agent that another process took, even with nothing to write, and gets the turn's result", async () => {
    const silent = await stage().openProcess({ agents: [clerk()] });
    const agent = await silent.runtime.agent("clerk", { agentId: "c" });
    await agent.start();
    const turn = agent.executeTurn("Pay.");
    const rest = await turn.settled;
    if (rest.status !== "waiting" || rest.reason !== "request")
      throw new Error(`expected a wait for a request, not ${JSON.stringify(rest)}`);
    silent.freeze();
    stage().expireLeases();
    const other = await stage().openProcess({ agents: [clerk()] });
    const taken = await other.runtime.find("c");
    await taken.start();
    await other.runtime.decide(rest.requests[0]?.requestId ?? "", { verdict: "approved", by: "ann" });
    expect(await elapse(stage().clock, taken.turn("c#1").result, 500)).toMatchObject({ text: "done" });
    silent.thaw();
    expect(await elapse(stage().clock, turn.result, 500)).toMatchObject({ status: "completed", text: "done" });
    await expect(agent.start()).rejects.toThrow(AlreadyOwnedError);
  });
});

import { expect } from "vitest";
import { z } from "zod";
import { type Agent, type AgentDefinition, defineAgent, defineTool, type Runtime, type Turn } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { calling } from "./turn-probes.ts";

/** An agent that asks for an approval if it is told to pay, and notes every other input. */
export function payingClerk(): AgentDefinition {
  const pay = defineTool({
    name: "pay",
    description: "Pays.",
    parameters: z.object({}),
    needsApproval: true,
    execute: () => "paid",
  });
  const model = scriptedModel(({ messages }) => {
    const last = messages.at(-1);
    if (last?.role === "tool") return "done";
    return last?.content === "pay" ? calling("pay") : "noted";
  });
  return defineAgent({ name: "clerk", model, tools: [pay] });
}

/** Opens the clerks `a-1`, whose turn waits for an approval, and `b-1`, which is idle. */
export async function openTwoClerks(runtime: Runtime): Promise<{ readonly turn: Turn; readonly requestId: string }> {
  const open = async (agentId: string): Promise<Agent> => {
    const clerk = await runtime.agent("clerk", { agentId, budget: { maxSteps: 50 } });
    await clerk.start();
    return clerk;
  };
  const turn = (await open("a-1")).executeTurn("pay");
  await open("b-1");
  const rest = await turn.settled;
  return { turn, requestId: ("requests" in rest && rest.requests[0]?.requestId) || "" };
}

/** Asserts that `b-1` accepts a turn in spite of what happened to `a-1`. */
export async function expectOtherWorks(runtime: Runtime): Promise<void> {
  const other = await runtime.find("b-1");
  await other.start();
  expect(await other.executeTurn("hello").result).toMatchObject({ status: "completed", text: "noted" });
}

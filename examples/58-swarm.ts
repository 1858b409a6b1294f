// Agents of equal rank hand over to each other. Each has the same tool: it leaves its result to another agent and ends the turn with it.
// The depth of the tree limits how often they hand over, and the budget of the first agent covers all of them.
import { type AgentDefinition, createRuntime, defineAgent, defineTool } from "troupe";
import { type ScriptedAnswer, scriptedModel } from "troupe/testing";
import { z } from "zod";

const members = new Map<string, AgentDefinition>();

const handOver = defineTool({
  name: "hand_over",
  description: "Hands the task to another agent, which answers the user.",
  parameters: z.object({ to: z.enum(["sales", "support"]), task: z.string() }),
  endsTurn: true,
  execute: async ({ to, task }, run) => {
    const child = await run.spawn(members.get(to), task, { key: to, history: "conversation", budget: { maxSteps: 4 } });
    return run.await(child);
  },
});

function member(name: "sales" | "support", answer: ScriptedAnswer): AgentDefinition {
  const definition = defineAgent({ name, tools: [handOver], budget: { maxSteps: 8 }, model: scriptedModel([answer]) });
  members.set(name, definition);
  return definition;
}

const sales = member("sales", {
  toolCalls: [{ name: "hand_over", arguments: { to: "support", task: "The lamp of order 12 is broken." } }],
});
const support = member("support", "A new lamp for order 12 is on its way.");

const runtime = await createRuntime({ agents: [sales, support] });
runtime.subscribe((event) => {
  if (event.type === "subagent.spawned") console.log(`${event.agentId} hands over`);
});
const agent = await runtime.agent("sales", { agentId: "shop" });
await agent.start();
const { text, steps } = await agent.executeTurn("My lamp is broken.").result;
console.log(text, steps);
await runtime.shutdown();

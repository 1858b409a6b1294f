// Tools: the declared effect class decides what happens to an interrupted call.
import { createRuntime, defineAgent, defineTool, textOf } from "troupe";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const stock = new Map([["paper", 12]]);

const lookUp = defineTool({
  name: "look_up",
  description: "Tells how many of an article are in stock.",
  parameters: z.object({ article: z.string() }),
  effect: "none", // no effect: may be repeated freely
  execute: ({ article }) => ({ article, count: stock.get(article) ?? 0 }),
});

const order = defineTool({
  name: "order",
  description: "Orders an article.",
  parameters: z.object({ article: z.string(), count: z.int().min(1).max(100) }),
  effect: "keyed", // repeated only with the same key, so that the shop can ignore a second order
  execute: ({ article, count }, run) => `ordered ${count} ${article} under the key ${run.idempotencyKey}`,
});

// A scripted model: it first orders too many, gets an error, and corrects itself.
const model = scriptedModel([
  { toolCalls: [{ name: "look_up", arguments: { article: "paper" } }] },
  { toolCalls: [{ name: "order", arguments: { article: "paper", count: 1000 } }] },
  { toolCalls: [{ name: "order", arguments: { article: "paper", count: 88 } }] },
  "There were 12 left, so I ordered 88.",
]);

const buyer = defineAgent({ name: "buyer", model, tools: [lookUp, order] });
const runtime = await createRuntime({ agents: [buyer] });
const agent = await runtime.agent("buyer", { agentId: "buyer-1" });
await agent.start();

const result = await agent.executeTurn("Fill up the paper to 100.").result;

for (const message of await agent.getMessages()) {
  const calls = message.role === "assistant" ? (message.toolCalls ?? []) : [];
  for (const call of calls) console.log(`call    ${call.name} ${call.arguments}`);
  if (message.content !== "") console.log(`${message.role.padEnd(9)} ${textOf(message.content)}`);
}
console.log(`\n${result.status} after ${result.steps} steps and ${result.toolCalls} tool calls`);
await runtime.shutdown();

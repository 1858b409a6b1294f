// Continues a recorded run from an earlier point. The payment is not made again: the fork gets its recorded result.
import { createRuntime, defineAgent, defineTool, memoryStores } from "troupe";
import { fork, scriptedModel } from "troupe/testing";
import { z } from "zod";

let payments = 0;
const order = z.object({ order: z.string() });
const look = defineTool({
  name: "look",
  description: "Looks at an order.",
  parameters: order,
  effect: "none",
  execute: ({ order }) => `Order ${order}: 40 dollars, arrived broken.`,
});
const refund = defineTool({
  name: "refund",
  description: "Pays the money back.",
  parameters: order,
  effect: "once",
  execute: ({ order }) => `Refunded ${order}, payment ${(payments += 1)}.`,
});
const script = (words: string) =>
  scriptedModel((_request, { call }) => {
    if (call?.step === 1) return { toolCalls: [{ name: "look", arguments: { order: "17" } }] };
    if (call?.step === 2) return { toolCalls: [{ name: "refund", arguments: { order: "17" } }] };
    return words;
  });
const desk = defineAgent({ name: "desk", model: script("Your money is on its way."), tools: [look, refund] });

const stores = memoryStores();
const runtime = await createRuntime({ agents: [desk], stores });
const agent = await runtime.agent(desk, { agentId: "customer-4" });
await agent.start();
console.log("origin:", (await agent.executeTurn("Order 17 is broken.").result).text, `(${payments} payment)`);

// The same past up to the refund, and another model from there on.
const friendly = await fork(
  { stores, agentId: "customer-4" },
  { at: { turn: 1, step: 2 }, agents: desk, model: script("So sorry! Your money is on its way.") },
);
console.log("fork:  ", (await friendly.turn.result).text, `(${payments} payment)`);
await friendly.close();

// A changed result: the order was never paid, and the refund is simulated.
const unpaid = await fork(
  { stores, agentId: "customer-4" },
  {
    at: { turn: 1, step: 2 },
    agents: desk,
    edit: { messages: { "customer-4#1:1:0": "Order 17: never paid." } },
    simulate: { refund: ({ order }: { order: string }) => `Nothing to refund for ${order}.` },
  },
);
await unpaid.turn.result;
for (const { role, content } of await unpaid.agent.getMessages()) if (role === "tool") console.log("-", content);
await unpaid.close();
await runtime.shutdown();

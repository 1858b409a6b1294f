import { defineAgent, defineTool, subagent } from "troupe";
import { z } from "zod";
import { model } from "./model.ts";

const orders: Readonly<Record<number, string>> = {
  7: "Order 7 cost 40 euros and arrived broken.",
  8: "Order 8 cost 25 euros and is being packed.",
};

const lookUpOrder = defineTool({
  name: "look_up_order",
  description: "Looks up where an order is, by its number.",
  parameters: z.object({ order: z.number().int() }),
  effect: "none", // it changes nothing, so it may run again after a crash
  execute: ({ order }) => orders[order] ?? `There is no order ${order}.`,
});

const clerk = defineAgent({
  name: "clerk",
  model,
  instructions: "Look up the order that you are asked about, and report what you find in one sentence.",
  tools: [lookUpOrder],
});

const refund = defineTool({
  name: "refund",
  description: "Pays the price of an order back.",
  parameters: z.object({ order: z.number().int() }),
  effect: "once", // after a crash in the middle it is not repeated
  needsApproval: true, // the call waits for a person, also over restarts
  execute: ({ order }) => `Order ${order} is refunded.`,
});

export const agent = defineAgent({
  name: "lead",
  model,
  instructions: "You serve customers of a shop. Ask the clerk about an order, and refund it if it arrived broken.",
  tools: [subagent(clerk), refund],
  budget: { maxSteps: 10, maxTokens: 100_000 }, // of one turn, the clerk included
});

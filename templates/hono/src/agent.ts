import { defineAgent, defineTool } from "troupe";
import { z } from "zod";
import { model } from "./model.ts";

const orders: Readonly<Record<number, string>> = {
  7: "Order 7 left the warehouse on Monday and arrives on Thursday.",
  8: "Order 8 is being packed.",
};

export const lookUpOrder = defineTool({
  name: "look_up_order",
  description: "Looks up where an order is, by its number.",
  parameters: z.object({ order: z.number().int() }),
  effect: "none", // it changes nothing, so it may run again after a crash
  execute: ({ order }) => orders[order] ?? `There is no order ${order}.`,
});

export const agent = defineAgent({
  name: "desk",
  model,
  instructions: "You answer questions about orders. Look an order up before you answer.",
  tools: [lookUpOrder],
  budget: { maxSteps: 8, maxTokens: 50_000 }, // of one turn
});

import { defineAgent, defineTool } from "troupe";
import { z } from "zod";
import { model } from "./model.ts";

const shelves: Readonly<Record<number, number>> = { 7: 12, 8: 0 };

export const countStock = defineTool({
  name: "count_stock",
  description: "Counts the stock of a shelf, by its number.",
  parameters: z.object({ shelf: z.number().int() }),
  queue: "warehouse", // calls wait here for a worker, which takes as many at a time as it is told to
  effect: "none", // another worker may repeat the call of a dead one
  timeoutMs: 20_000,
  execute: ({ shelf }) => `Shelf ${shelf} has ${shelves[shelf] ?? 0} chairs.`,
});

export const agent = defineAgent({
  name: "desk",
  model,
  instructions: "You answer questions about the stock of a warehouse. Count before you answer.",
  tools: [countStock],
  budget: { maxSteps: 8, maxTokens: 50_000 }, // of one turn
});

import { z } from "zod";
import { defineTool } from "../../src/index.ts";

/** A tool that makes a payment, once, after an approval. */
export const payTool = defineTool({
  name: "pay",
  description: "Pays.",
  parameters: z.object({ to: z.string(), euros: z.number() }),
  effect: "once",
  needsApproval: true,
  execute: ({ to }) => `paid ${to}`,
});

// The agents for the compose file in this folder.
import { defineAgent, defineTool, offlineModel, openaiModel, subagent } from "troupe";
import { z } from "zod";

const model = process.env["OPENAI_API_KEY"] ? openaiModel("gpt-5-mini") : offlineModel();

const order = defineTool({
  name: "order",
  description: "Orders something for the office.",
  parameters: z.object({ what: z.string() }),
  needsApproval: true,
  execute: ({ what }) => `ordered ${what}`,
});
const scout = defineAgent({ name: "scout", model, instructions: "Answer from what you are given." });

export const agent = defineAgent({
  name: "desk",
  model,
  tools: [order, subagent(scout)],
  budget: { maxTokens: 50_000, maxSeconds: 120 },
});

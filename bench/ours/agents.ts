import { z } from "zod";
import { defineAgent, defineTool, openaiModel, subagent } from "../../src/index.ts";
import { childInstructions, instructions, lookup, type Scenario } from "../scenario.ts";

/** Limits that apply but are never reached, so that each step reserves and settles as in production. */
export const budget = { maxSteps: 20, maxTokens: 1_000_000 };

export const lookupTool = defineTool({
  name: "lookup",
  description: "Looks up the value of a key.",
  parameters: z.object({ key: z.string() }),
  effect: "none",
  execute: ({ key }) => lookup(key),
});

/** The agent of a scenario, defined as a user would. */
export function agentOf(scenario: Scenario, baseUrl: string) {
  const server = { apiKey: "none", baseURL: baseUrl };
  const common = { name: "agent", model: openaiModel(scenario.model, server), instructions, budget };
  if (scenario.agent === "tools") return defineAgent({ ...common, tools: [lookupTool] });
  if (scenario.agent !== "lead") return defineAgent(common);
  const child = defineAgent({
    name: "child",
    model: openaiModel(scenario.childModel ?? "", server),
    instructions: childInstructions,
    tools: [lookupTool],
    budget,
  });
  return defineAgent({ ...common, tools: [subagent(child, { description: "Looks after one part." })] });
}

import { z } from "zod";
import { type AgentDefinition, defineAgent, defineTool, openaiModel, subagent } from "../../src/index.ts";

/** The queue of the queued tool. */
export const SOAK_QUEUE = "soak";

/** A lead with a plain tool, one that needs approval, one on a queue, and a subagent. */
export function soakTeam(baseURL: string): AgentDefinition {
  const parameters = z.object({ note: z.string() });
  const tool = { description: "Does nothing that lasts.", parameters, execute: () => "x".repeat(500) };
  const common = { instructions: "Go on.", budget: { maxSteps: 20, maxTokens: 1_000_000 } };
  const model = openaiModel("soak", { apiKey: "none", baseURL });
  const look = defineTool({ ...tool, name: "look", effect: "none" });
  const child = defineAgent({ ...common, name: "child", model, tools: [look] });
  const tools = [
    look,
    defineTool({ ...tool, name: "approve", effect: "keyed", needsApproval: true }),
    defineTool({ ...tool, name: "queued", effect: "keyed", queue: SOAK_QUEUE }),
    subagent(child),
  ];
  return defineAgent({ ...common, name: "lead", model, tools });
}

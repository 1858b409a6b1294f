import { type AgentDefinition, defineAgent, windowHistory } from "../../src/index.ts";
import { instantModel } from "../ours/instant-model.ts";
import { lookupTool } from "../ours/agents.ts";
import { instructions } from "../scenario.ts";

/** Model calls per turn, by agent name. */
export const turnSteps = { once: 1, ten: 10 } as const;
export type WorkedAgent = keyof typeof turnSteps;

/** Agents whose model answers at once, so that only queues and stores are measured. */
export function workedAgents(): AgentDefinition[] {
  return (Object.keys(turnSteps) as WorkedAgent[]).map((name) =>
    defineAgent({
      name,
      model: instantModel(turnSteps[name]),
      instructions,
      tools: [lookupTool],
      history: windowHistory(1, { upTo: 1 }),
    }),
  );
}

import { z } from "zod";
import { type AgentDefinition, type Budget, defineAgent, defineTool, openaiModel, subagent } from "../../src/index.ts";

/** Whole micro-dollars per token, so that nothing is rounded. */
export const price = { inputPerMillion: 1, outputPerMillion: 4 };

export interface SpendingTeam {
  /** Names of their models, which determine their behaviour. */
  readonly lead: string;
  readonly child: string;
  readonly childBudget: Budget;
}

/** A step limit that no run reaches. */
const many = { maxSteps: 100_000 };

export function spendingTeam(baseURL: string, { lead, child, childBudget }: SpendingTeam): AgentDefinition {
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: z.object({}),
    effect: "none",
    execute: () => "nothing to see",
  });
  const common = (name: string, model: string) => ({
    name,
    model: openaiModel(model, { apiKey: "none", baseURL }),
    instructions: `You are the ${name} of a chaos run.`,
    budget: many,
    price,
    maxModelAttempts: 5,
  });
  const worker = defineAgent({ ...common("child", child), tools: [look] });
  const helped = subagent(worker, { budget: { ...many, ...childBudget } });
  return defineAgent({ ...common("lead", lead), tools: [look, helped] });
}

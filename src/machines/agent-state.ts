import { z } from "zod";
import type { Entry, Lifecycle } from "../state/index.ts";

/** What the agent machine keeps: ids and counters only. */
export const agentContextSchema = z.object({
  turnCount: z.number().int().nonnegative(),
  openTurnId: z.string().nullable(),
  /** The newest turn, open or ended. */
  lastTurnId: z.string().nullable(),
  openChildIds: z.array(z.string()),
  waitsForBudget: z.boolean(),
});
export type AgentContext = z.infer<typeof agentContextSchema>;

export const newAgentContext: AgentContext = Object.freeze({
  turnCount: 0,
  openTurnId: null,
  lastTurnId: null,
  openChildIds: [],
  waitsForBudget: false,
});

/** The agent's counters after one more entry that it hears. */
export function foldAgent(context: AgentContext, entry: Entry): AgentContext {
  switch (entry.type) {
    case "turn.started":
      return {
        ...context,
        openTurnId: entry.turnId,
        lastTurnId: entry.turnId,
        openChildIds: [],
        waitsForBudget: false,
      };
    case "turn.ended":
      return {
        ...context,
        openTurnId: null,
        turnCount: entry.number,
        openChildIds: [],
        waitsForBudget: false,
      };
    case "child.spawned":
      return { ...context, openChildIds: [...context.openChildIds, entry.childId] };
    case "child.ended":
      return { ...context, openChildIds: context.openChildIds.filter((id) => id !== entry.childId) };
    case "intent.refused":
      return entry.reason === "mustWait" ? { ...context, waitsForBudget: true } : context;
    case "budget.freed":
      return { ...context, waitsForBudget: false };
    default:
      return context;
  }
}

/** The turn only waits: for children, or for others' reservations. */
export function isWaiting(context: AgentContext): boolean {
  return context.waitsForBudget || context.openChildIds.length > 0;
}

/** The public lifecycle status of the machine's state value (row L3). */
export function lifecycleOf(value: unknown): Lifecycle {
  const top = typeof value === "string" ? value : Object.keys(value as object)[0];
  return top as Lifecycle;
}

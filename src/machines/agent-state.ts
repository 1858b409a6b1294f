import { z } from "zod";
import type { Entry, Lifecycle } from "../state/index.ts";

/** What the agent machine keeps: ids and counters only. */
export const agentContextSchema = z.object({
  turnCount: z.number().int().nonnegative(),
  openTurnId: z.string().nullable(),
  /** Work of this agent that was granted and has no outcome: pausing waits for it. */
  inFlight: z.array(z.string()),
  openChildIds: z.array(z.string()),
  waitsForBudget: z.boolean(),
});
export type AgentContext = z.infer<typeof agentContextSchema>;

export const newAgentContext: AgentContext = Object.freeze({
  turnCount: 0,
  openTurnId: null,
  inFlight: [],
  openChildIds: [],
  waitsForBudget: false,
});

/** The agent's counters after one more entry. */
export function foldAgent(context: AgentContext, entry: Entry): AgentContext {
  switch (entry.type) {
    case "turn.started":
      return { ...context, openTurnId: entry.turnId, inFlight: [], openChildIds: [], waitsForBudget: false };
    case "turn.ended":
      return {
        ...context,
        openTurnId: null,
        turnCount: entry.number,
        inFlight: [],
        openChildIds: [],
        waitsForBudget: false,
      };
    case "model.requested":
      return { ...withWork(context, "model"), waitsForBudget: false };
    case "model.responded":
    case "model.failed":
      return withoutWork(context, "model");
    case "tool.started":
      return withWork(context, entry.callId);
    case "tool.settled":
    case "tool.retrying":
      return withoutWork(context, entry.callId);
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

function withWork(context: AgentContext, id: string): AgentContext {
  return context.inFlight.includes(id) ? context : { ...context, inFlight: [...context.inFlight, id] };
}

function withoutWork(context: AgentContext, id: string): AgentContext {
  return context.inFlight.includes(id)
    ? { ...context, inFlight: context.inFlight.filter((one) => one !== id) }
    : context;
}

/** Nothing of this agent's own is under way. */
export function isQuiet(context: AgentContext): boolean {
  return context.inFlight.length === 0;
}

/** The turn only waits: for children, or for others' reservations. */
export function isWaiting(context: AgentContext): boolean {
  return isQuiet(context) && (context.waitsForBudget || context.openChildIds.length > 0);
}

/** The public lifecycle status of the machine's state value (row L3). */
export function lifecycleOf(value: unknown): Lifecycle {
  const top = typeof value === "string" ? value : Object.keys(value as object)[0];
  return top as Lifecycle;
}

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
  openRequestIds: z.array(z.string()),
  /** Where what the model sees of the conversation begins; null: at its first message. */
  compaction: z
    .object({ through: z.string(), summaryMessageId: z.string().nullable(), kept: z.array(z.string()) })
    .nullable(),
});
export type AgentContext = z.infer<typeof agentContextSchema>;

export const newAgentContext: AgentContext = Object.freeze({
  turnCount: 0,
  openTurnId: null,
  lastTurnId: null,
  openChildIds: [],
  waitsForBudget: false,
  openRequestIds: [],
  compaction: null,
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
        openRequestIds: [],
        waitsForBudget: false,
      };
    case "turn.ended":
      return {
        ...context,
        openTurnId: null,
        turnCount: entry.number,
        openChildIds: [],
        openRequestIds: [],
        waitsForBudget: false,
      };
    case "request.opened":
      return { ...context, openRequestIds: [...context.openRequestIds, entry.requestId] };
    case "request.decided":
      return { ...context, openRequestIds: context.openRequestIds.filter((id) => id !== entry.requestId) };
    case "context.compacted": {
      const { through, summaryMessageId, kept } = entry;
      return { ...context, compaction: { through, summaryMessageId, kept } };
    }
    case "conversation.cleared":
      return { ...context, compaction: null };
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

/** The turn waits: for children, for somebody's decision, or for others' reservations. */
export function isWaiting(context: AgentContext): boolean {
  return context.waitsForBudget || context.openChildIds.length > 0 || context.openRequestIds.length > 0;
}

/** The public lifecycle status of the machine's state value (row L3). */
export function lifecycleOf(value: unknown): Lifecycle {
  const top = typeof value === "string" ? value : Object.keys(value as object)[0];
  return top as Lifecycle;
}

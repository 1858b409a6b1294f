import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";
import { type Entry, wakingReportSchema } from "../state/index.ts";

// In its own file because types of the public API refer to the context, and the machine's inferred type is long.
/** The context of the agent machine: ids and counters only. */
export const agentContextSchema = z.object({
  turnCount: z.number().int().nonnegative(),
  openTurnId: z.string().nullable(),
  /** The newest turn, open or ended. */
  lastTurnId: z.string().nullable(),
  openChildIds: z.array(z.string()),
  /** Background children whose end has not been reported, with the names of their definitions. They can outlive the turn. */
  background: z.array(z.object({ childId: z.string(), name: z.string() })),
  /** Reports since the last turn that require a new turn. */
  waking: z.array(wakingReportSchema),
  waitsForBudget: z.boolean(),
  openRequestIds: z.array(z.string()),
  /** Id of the message at which the model's view of the conversation starts; `null` for the first message. */
  compaction: z
    .object({ through: z.string(), summaryMessageId: z.string().nullable(), kept: z.array(z.string()) })
    .nullable(),
  /** How many calls each stub has answered, by its index; `undefined` before the first. */
  stubUses: z.record(z.string(), z.number().int().positive()).optional(),
});

type Stored = DeepReadonly<z.infer<typeof agentContextSchema>>;
/** As JSON it has no `undefined`. */
export type AgentContext = Omit<Stored, "stubUses"> & { readonly stubUses?: NonNullable<Stored["stubUses"]> };

export const newAgentContext: AgentContext = Object.freeze({
  turnCount: 0,
  openTurnId: null,
  lastTurnId: null,
  openChildIds: Object.freeze([]),
  background: Object.freeze([]),
  waking: Object.freeze([]),
  waitsForBudget: false,
  openRequestIds: Object.freeze([]),
  compaction: null,
});

/** The agent's context after one more entry. */
export function foldAgent(context: AgentContext, entry: Entry): AgentContext {
  switch (entry.type) {
    case "turn.started":
      return {
        ...context,
        openTurnId: entry.turnId,
        lastTurnId: entry.turnId,
        openChildIds: [],
        waking: [],
        openRequestIds: [],
        waitsForBudget: false,
      };
    case "turn.ended":
      return {
        ...context,
        openTurnId: null,
        turnCount: entry.number,
        openChildIds: [],
        waking: entry.waking ?? [],
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
      if (entry.background) {
        const child = { childId: entry.childId, name: entry.definition.name };
        return { ...context, background: [...context.background, child] };
      }
      return { ...context, openChildIds: [...context.openChildIds, entry.childId] };
    case "child.ended":
      return { ...context, openChildIds: context.openChildIds.filter((id) => id !== entry.childId) };
    case "child.reported": {
      const { childId, messageId, actorId } = entry;
      const background = context.background.filter((child) => child.childId !== childId);
      const isForTurn = entry.wakes && entry.turnId === undefined;
      return {
        ...context,
        background,
        waking: isForTurn ? [...context.waking, { childId, messageId, actorId }] : context.waking,
      };
    }
    case "tool.settled": {
      if (typeof entry.stub !== "number") return context;
      const { stubUses = {} } = context;
      return { ...context, stubUses: { ...stubUses, [entry.stub]: (stubUses[entry.stub] ?? 0) + 1 } };
    }
    case "intent.refused":
      return entry.reason === "mustWait" ? { ...context, waitsForBudget: true } : context;
    case "budget.freed":
      return { ...context, waitsForBudget: false };
    default:
      return context;
  }
}

/** Whether the turn waits for children, for a decision on a request, or for other agents' reservations. */
export function isWaiting(context: AgentContext): boolean {
  return context.waitsForBudget || context.openChildIds.length > 0 || context.openRequestIds.length > 0;
}

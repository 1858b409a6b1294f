import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";
import { limitNameSchema, limitsSchema } from "../budget/index.ts";
import { callEndSchema } from "./call-end.ts";
import { backgroundSchema, turnOutcomeSchema, traceHeadersSchema } from "./entry-parts.ts";
import { storedErrorSchema } from "./execution.ts";
import { contentSchema } from "./message.ts";
import { queuedCallKey } from "./record.ts";
import { decisionSchema } from "./request.ts";
import { stopReasonSchema } from "./stop.ts";

/** `key` is natural: posting the same thing twice is one item. */
const item = { key: z.string(), at: z.number().int() };

/** A turn that was accepted. `input` null continues the conversation without a message (row L5). */
export const turnItemSchema = z.object({
  kind: z.literal("turn"),
  ...item,
  turnId: z.string(),
  number: z.number().int().positive(),
  input: contentSchema.nullable(),
  /** Messages of the conversation that are its input, where it has none of its own. Absent: none. */
  inputMessageIds: z.array(z.string()).optional(),
  actorId: z.string().nullable(),
  limits: limitsSchema.nullable(),
  /** The child whose end the turn was started for; absent: somebody asked for it. */
  wokenBy: z.string().optional(),
  /** The span under which it was asked for. */
  trace: traceHeadersSchema.optional(),
  /** Account above the turn's own, where it is not the agent's. */
  parentAccountId: z.string().optional(),
});
export type TurnItem = DeepReadonly<z.infer<typeof turnItemSchema>>;

export const childEndedItemSchema = z.object({
  kind: z.literal("child.ended"),
  ...item,
  parentTurnId: z.string(),
  step: z.number().int().positive(),
  callId: z.string().nullable(),
  childId: z.string(),
  childTurnId: z.string(),
  outcome: turnOutcomeSchema,
  stopReason: stopReasonSchema,
  text: z.string(),
  error: storedErrorSchema.nullable(),
  /** Children of its own go on in the background. */
  leavesWork: z.boolean().optional(),
});
export type ChildEndedItem = DeepReadonly<z.infer<typeof childEndedItemSchema>>;

/** The end of a child that went on in the background. */
export const childReportedItemSchema = z.object({
  kind: z.literal("child.reported"),
  ...item,
  childId: z.string(),
  childTurnId: z.string(),
  /** Name of its definition. */
  name: z.string(),
  onEnd: backgroundSchema.shape.onEnd,
  actorId: z.string().nullable(),
  outcome: turnOutcomeSchema,
  stopReason: stopReasonSchema,
  text: z.string(),
  error: storedErrorSchema.nullable(),
  leavesWork: z.boolean().optional(),
});
export type ChildReportedItem = DeepReadonly<z.infer<typeof childReportedItemSchema>>;

/** The end of a call that was run from a queue; its key is that of `callEndedKey`. */
export const callEndedItemSchema = z.object({
  kind: z.literal("call.ended"),
  ...item,
  turnId: z.string(),
  step: z.number().int().positive(),
  callId: z.string(),
  attempt: z.number().int().positive(),
  end: callEndSchema,
});
export type CallEndedItem = DeepReadonly<z.infer<typeof callEndedItemSchema>>;

export function callEndedKey(call: { readonly callId: string; readonly attempt: number }): string {
  return `ended:${queuedCallKey(call)}`;
}

export const inboxItemSchema = z.discriminatedUnion("kind", [
  turnItemSchema,
  childEndedItemSchema,
  childReportedItemSchema,
  callEndedItemSchema,
  z.object({ kind: z.literal("pause"), ...item, by: z.string(), now: z.boolean().optional() }),
  z.object({ kind: z.literal("resume"), ...item, by: z.string() }),
  z.object({
    kind: z.literal("abort"),
    ...item,
    /** The turn to end; null: whichever is open. */
    turnId: z.string().nullable(),
    by: z.string(),
    reason: z.string(),
    /** The stop reason it becomes: a person's abort is `user_requested`, a parent's limit is that limit. */
    stopReason: stopReasonSchema,
    /** A new message takes the turn's place. */
    isSuperseded: z.boolean().optional(),
  }),
  z.object({ kind: z.literal("budget.freed"), ...item }),
  /** Four fifths of a limit on time have gone by while nobody committed anything. */
  z.object({
    kind: z.literal("budget.warning"),
    ...item,
    accountId: z.string(),
    limit: limitNameSchema,
    used: z.number(),
    max: z.number(),
  }),
  z.object({
    kind: z.literal("decision"),
    ...item,
    requestId: z.string(),
    turnId: z.string(),
    callId: z.string(),
    decision: decisionSchema,
  }),
]);
export type InboxItem = DeepReadonly<z.infer<typeof inboxItemSchema>>;

const timeLimitSchema = z.enum(["maxActiveMs", "deadlineAt"]);

/** A stored alarm: whoever is alive fires what is overdue (design, Timers). */
const alarm = { tenant: z.string(), agentId: z.string(), id: z.string(), dueAt: z.number().int() };
export const timerSchema = z.discriminatedUnion("kind", [
  /** A limit on time runs out, or its warning is due. */
  z.object({
    kind: z.literal("limit"),
    ...alarm,
    accountId: z.string(),
    limit: timeLimitSchema,
    /** When the limit is reached, where the alarm is that of its warning. Absent: the alarm is that of the limit. */
    limitAt: z.number().int().optional(),
  }),
  /** Room is no longer kept for those who were told of it and did not ask. */
  z.object({ kind: z.literal("claim"), ...alarm, accountId: z.string() }),
  /** A request to a person expires. */
  z.object({ kind: z.literal("request"), ...alarm, requestId: z.string() }),
  /** A call that waits for children in the background waits no longer. */
  z.object({ kind: z.literal("wait"), ...alarm, turnId: z.string(), callId: z.string() }),
  /** A queued call has not ended yet: its job may be lost, and is added again. */
  z.object({
    kind: z.literal("job"),
    ...alarm,
    turnId: z.string(),
    callId: z.string(),
    attempt: z.number().int().positive(),
    queue: z.string(),
  }),
]);
export type Timer = DeepReadonly<z.infer<typeof timerSchema>>;

import { z } from "zod";
import {
  integerSchema,
  optionalFlagSchema,
  optionalIntegerSchema,
  optionalTextSchema,
  positiveSchema,
  textOrNullSchema,
  textSchema,
} from "../base/index.ts";
import type { DeepReadonly } from "../base/index.ts";
import { bindingSchema, limitNameSchema, limitsSchema } from "../budget/index.ts";
import { callEndSchema } from "./call-end.ts";
import { backgroundSchema, inputKeySchema, turnOutcomeSchema, traceHeadersSchema } from "./entry-parts.ts";
import { storedErrorSchema } from "./execution.ts";
import { contentSchema, messageSchema } from "./message.ts";
import { callSettingsSchema, modelToolSchema } from "./model-call.ts";
import { queuedCallKey } from "./record.ts";
import { budgetDecisionSchema, decisionSchema } from "./request.ts";
import { stopReasonSchema } from "./stop.ts";

/** `key` is a natural key: posting twice with the same key makes one item. */
const item = { key: textSchema, at: integerSchema };

/** An accepted turn. If `input` is `null`, it continues the conversation without a message. */
export const turnItemSchema = z.object({
  kind: z.literal("turn"),
  ...item,
  turnId: textSchema,
  number: positiveSchema,
  input: contentSchema.nullable(),
  /** The messages with which a subagent's conversation begins; `undefined` if it begins empty. */
  conversation: z.array(messageSchema).optional(),
  /** Messages in the conversation that are the turn's input, if `input` is empty. `undefined` if there are none. */
  inputMessageIds: z.array(textSchema).optional(),
  actorId: textOrNullSchema,
  limits: limitsSchema.nullable(),
  /** Tools of this turn that its caller runs; `undefined` if there are none. */
  clientTools: z.array(modelToolSchema).optional(),
  /** Settings of the turn's model calls; `undefined` if there are none. */
  settings: callSettingsSchema.optional(),
  /** The child whose end started the turn; `undefined` if a caller requested the turn. */
  wokenBy: optionalTextSchema,
  /** The span that requested the turn. */
  trace: traceHeadersSchema.optional(),
  /** The parent of the turn's account, if it is not the agent's account. */
  parentAccountId: optionalTextSchema,
  /** The key that the turn's caller chose, and the hash of all parameters. */
  turnKey: inputKeySchema.optional(),
  /** The command that meant the input for an earlier turn, which could not take it in. */
  steerId: optionalTextSchema,
});
export type TurnItem = DeepReadonly<z.infer<typeof turnItemSchema>>;

/** An input for the open turn. If that turn makes no further model call, the input opens a turn of its own. */
export const steerItemSchema = z.object({
  kind: z.literal("steer"),
  ...item,
  /** The turn that was open when the input was accepted. */
  turnId: textSchema,
  steerId: textSchema,
  input: contentSchema,
  actorId: textOrNullSchema,
  /** These fields are those of a turn that the input opens. */
  limits: limitsSchema.nullable(),
  clientTools: z.array(modelToolSchema).optional(),
  settings: callSettingsSchema.optional(),
  trace: traceHeadersSchema.optional(),
  inputKey: inputKeySchema.optional(),
});
export type SteerItem = DeepReadonly<z.infer<typeof steerItemSchema>>;

export const childEndedItemSchema = z.object({
  kind: z.literal("child.ended"),
  ...item,
  parentTurnId: textSchema,
  step: positiveSchema,
  callId: textOrNullSchema,
  childId: textSchema,
  childTurnId: textSchema,
  outcome: turnOutcomeSchema,
  stopReason: stopReasonSchema,
  text: textSchema,
  error: storedErrorSchema.nullable(),
  /** Whether it has background children that continue. */
  leavesWork: optionalFlagSchema,
});
export type ChildEndedItem = DeepReadonly<z.infer<typeof childEndedItemSchema>>;

/** The end of a background child. */
export const childReportedItemSchema = z.object({
  kind: z.literal("child.reported"),
  ...item,
  childId: textSchema,
  childTurnId: textSchema,
  /** Name of the child's definition. */
  name: textSchema,
  onEnd: backgroundSchema.shape.onEnd,
  actorId: textOrNullSchema,
  outcome: turnOutcomeSchema,
  stopReason: stopReasonSchema,
  text: textSchema,
  error: storedErrorSchema.nullable(),
  leavesWork: optionalFlagSchema,
});
export type ChildReportedItem = DeepReadonly<z.infer<typeof childReportedItemSchema>>;

/** The end of a queued call; its key is `callEndedKey`. */
export const callEndedItemSchema = z.object({
  kind: z.literal("call.ended"),
  ...item,
  turnId: textSchema,
  step: positiveSchema,
  callId: textSchema,
  attempt: positiveSchema,
  end: callEndSchema,
});
export type CallEndedItem = DeepReadonly<z.infer<typeof callEndedItemSchema>>;

export function callEndedKey(call: { readonly callId: string; readonly attempt: number }): string {
  return `ended:${queuedCallKey(call)}`;
}

export const inboxItemSchema = z.discriminatedUnion("kind", [
  turnItemSchema,
  steerItemSchema,
  childEndedItemSchema,
  childReportedItemSchema,
  callEndedItemSchema,
  z.object({ kind: z.literal("pause"), ...item, by: textSchema, now: optionalFlagSchema }),
  z.object({ kind: z.literal("resume"), ...item, by: textSchema }),
  z.object({
    kind: z.literal("abort"),
    ...item,
    /** The turn to end; `null` for the open turn, if there is one. */
    turnId: textOrNullSchema,
    by: textSchema,
    reason: textSchema,
    /** The resulting stop reason: `user_requested` for an abort by a person, the limit's reason for a parent's limit. */
    stopReason: stopReasonSchema,
    /** Whether a new message replaces the turn. */
    isSuperseded: optionalFlagSchema,
  }),
  z.object({
    kind: z.literal("budget.freed"),
    ...item,
    /** The decision of a person on a request for more budget, if it is the reason. */
    decided: budgetDecisionSchema.optional(),
  }),
  /**
   * Limits on an account of the agent's chain have changed, and thereby the binding limits of its turns. `change` contains the limits if
   * it is the agent's own lifetime account, and is `undefined` if the account belongs to an agent above.
   */
  z.object({
    kind: z.literal("budget.changed"),
    ...item,
    binding: bindingSchema.optional(),
    change: z.object({ by: textSchema, accountId: textSchema, limits: limitsSchema, before: limitsSchema }).optional(),
  }),
  /** Another process needs to change the agent between two turns, so its owner may release it. */
  z.object({ kind: z.literal("lease.wanted"), ...item }),
  /** 80 % of a time limit have passed without a commit. */
  z.object({
    kind: z.literal("budget.warning"),
    ...item,
    accountId: textSchema,
    limit: limitNameSchema,
    used: z.number(),
    max: z.number(),
  }),
  z.object({
    kind: z.literal("decision"),
    ...item,
    requestId: textSchema,
    turnId: textSchema,
    callId: textSchema,
    decision: decisionSchema,
    /** The key of the decision; `undefined` if there is none. */
    decisionKey: optionalTextSchema,
  }),
]);
export type InboxItem = DeepReadonly<z.infer<typeof inboxItemSchema>>;

const timeLimitSchema = z.enum(["maxActiveMs", "deadlineAt"]);

/** A stored alarm; any living process fires it when it is due. */
const alarm = { tenant: textSchema, agentId: textSchema, id: textSchema, dueAt: integerSchema };
export const timerSchema = z.discriminatedUnion("kind", [
  /** A time limit is reached, or its warning is due. */
  z.object({
    kind: z.literal("limit"),
    ...alarm,
    accountId: textSchema,
    limit: timeLimitSchema,
    /** When the limit is reached, if this alarm is its warning; `undefined` if this is the alarm of the limit itself. */
    limitAt: optionalIntegerSchema,
  }),
  /** Woken waiters that did not ask lose the amount that was kept free for them. */
  z.object({ kind: z.literal("claim"), ...alarm, accountId: textSchema }),
  /** A request to a person expires. */
  z.object({ kind: z.literal("request"), ...alarm, requestId: textSchema }),
  /** The wait of a call for background children ends. */
  z.object({ kind: z.literal("wait"), ...alarm, turnId: textSchema, callId: textSchema }),
  /** A queued call has not ended yet: its job may be lost, and is added again. */
  z.object({
    kind: z.literal("job"),
    ...alarm,
    turnId: textSchema,
    callId: textSchema,
    attempt: positiveSchema,
    queue: textSchema,
  }),
]);
export type Timer = DeepReadonly<z.infer<typeof timerSchema>>;

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
import { backgroundSchema, turnOutcomeSchema, traceHeadersSchema } from "./entry-parts.ts";
import { storedErrorSchema } from "./execution.ts";
import { contentSchema } from "./message.ts";
import { modelToolSchema } from "./model-call.ts";
import { queuedCallKey } from "./record.ts";
import { decisionSchema } from "./request.ts";
import { stopReasonSchema } from "./stop.ts";

/** `key` is a natural key: posting the same thing twice makes one item. */
const item = { key: textSchema, at: integerSchema };

/** An accepted turn. `input` null continues the conversation without a message. */
export const turnItemSchema = z.object({
  kind: z.literal("turn"),
  ...item,
  turnId: textSchema,
  number: positiveSchema,
  input: contentSchema.nullable(),
  /** Messages already in the conversation that are its input, if `input` has none. `undefined` if there are none. */
  inputMessageIds: z.array(textSchema).optional(),
  actorId: textOrNullSchema,
  limits: limitsSchema.nullable(),
  /** Tools of this turn that its caller runs; `undefined` if there are none. */
  clientTools: z.array(modelToolSchema).optional(),
  /** The child whose end started the turn; `undefined` if a caller requested the turn. */
  wokenBy: optionalTextSchema,
  /** The span in which it was requested. */
  trace: traceHeadersSchema.optional(),
  /** The account above the turn's own, if it is not the agent's. */
  parentAccountId: optionalTextSchema,
  /** The key that its caller chose, and the hash of everything that was asked for. */
  turnKey: z.object({ text: textSchema, hash: textSchema }).optional(),
});
export type TurnItem = DeepReadonly<z.infer<typeof turnItemSchema>>;

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
  /** It has children in the background that go on. */
  leavesWork: optionalFlagSchema,
});
export type ChildEndedItem = DeepReadonly<z.infer<typeof childEndedItemSchema>>;

/** The end of a child in the background. */
export const childReportedItemSchema = z.object({
  kind: z.literal("child.reported"),
  ...item,
  childId: textSchema,
  childTurnId: textSchema,
  /** Name of its definition. */
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

/** The end of a queued call; its key is that of `callEndedKey`. */
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
  childEndedItemSchema,
  childReportedItemSchema,
  callEndedItemSchema,
  z.object({ kind: z.literal("pause"), ...item, by: textSchema, now: optionalFlagSchema }),
  z.object({ kind: z.literal("resume"), ...item, by: textSchema }),
  z.object({
    kind: z.literal("abort"),
    ...item,
    /** The turn to end; `null` for the open one, if any. */
    turnId: textOrNullSchema,
    by: textSchema,
    reason: textSchema,
    /** The resulting stop reason: a person's abort is `user_requested`, a parent's limit is that limit. */
    stopReason: stopReasonSchema,
    /** A new message replaces the turn. */
    isSuperseded: optionalFlagSchema,
  }),
  z.object({ kind: z.literal("budget.freed"), ...item }),
  /**
   * Limits on an account of the agent's chain have changed, and with them what binds its turns. `change` has the limits if it is
   * the account of the agent's own lifetime, and is `undefined` if the account belongs to an agent above it.
   */
  z.object({
    kind: z.literal("budget.changed"),
    ...item,
    binding: bindingSchema.optional(),
    change: z.object({ by: textSchema, accountId: textSchema, limits: limitsSchema, before: limitsSchema }).optional(),
  }),
  /** Another process wants to change the agent between two turns, so its owner need not keep it. */
  z.object({ kind: z.literal("lease.wanted"), ...item }),
  /** 80 % of a limit on time have passed without a commit. */
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
    /** The key that the decision was made with; `undefined` if it had none. */
    decisionKey: optionalTextSchema,
  }),
]);
export type InboxItem = DeepReadonly<z.infer<typeof inboxItemSchema>>;

const timeLimitSchema = z.enum(["maxActiveMs", "deadlineAt"]);

/** A stored alarm: any living process fires it when it is due. */
const alarm = { tenant: textSchema, agentId: textSchema, id: textSchema, dueAt: integerSchema };
export const timerSchema = z.discriminatedUnion("kind", [
  /** A limit on time is reached, or its warning is due. */
  z.object({
    kind: z.literal("limit"),
    ...alarm,
    accountId: textSchema,
    limit: timeLimitSchema,
    /** When the limit is reached, if this is the alarm of its warning; `undefined` if this is the alarm of the limit itself. */
    limitAt: optionalIntegerSchema,
  }),
  /** Woken waiters that did not ask lose the room kept for them. */
  z.object({ kind: z.literal("claim"), ...alarm, accountId: textSchema }),
  /** A request to a person expires. */
  z.object({ kind: z.literal("request"), ...alarm, requestId: textSchema }),
  /** The wait of a call for children in the background ends. */
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

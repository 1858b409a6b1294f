import { z } from "zod";
import {
  countOrNullSchema,
  countSchema,
  flagSchema,
  integerOrNullSchema,
  integerSchema,
  optionalTextSchema,
  positiveSchema,
  textOrNullSchema,
  textSchema,
} from "../base/index.ts";
import type { DeepReadonly } from "../base/index.ts";
import { limitNameSchema, limitsSchema } from "../budget/index.ts";
import { callOutcomeSchema, storedErrorSchema } from "./execution.ts";
import { jsonSchema } from "./json.ts";
import { lifecycleSchema } from "./record.ts";
import { callSettingsSchema, finishReasonSchema, usageSchema } from "./model-call.ts";
import { requestKindSchema, requestVerdictSchema } from "./request.ts";
import { stopReasonSchema } from "./stop.ts";
import { traceHeadersSchema } from "./entry-parts.ts";

const common = {
  agentId: textSchema,
  /** Name of the agent's definition. */
  agentName: textSchema,
  parentAgentId: textOrNullSchema,
  rootAgentId: textSchema,
  sessionId: textOrNullSchema,
  turnId: textOrNullSchema,
  step: countOrNullSchema,
  /** Milliseconds since the epoch. */
  at: integerSchema,
  /** Position among the tree's durable events; `null` for ephemeral ones. A client can continue after any of them. */
  cursor: textOrNullSchema,
};
/** What a forecast says of a limit. */
export const forecastFields = {
  accountId: textSchema,
  limit: limitNameSchema,
  /** In the limit's unit: steps, tokens, micro-dollars, calls. */
  used: countSchema,
  reserved: countSchema,
  max: countSchema,
  /** The use when the account renews; `null` if it does not renew. */
  expected: countOrNullSchema,
  /** When the account renews; `null` if it does not. */
  renewsAt: integerOrNullSchema,
  /** When the limit will be met; `null` if not before the account renews. */
  metAt: integerOrNullSchema,
  /** The forecast as text, with the holder of the account. */
  message: textSchema,
};

/** Fields of ephemeral events, which are not stored: only live clients receive them. */
const ephemeral = {
  /** Cursor of the previous durable event, from which a client can continue. `null` before the first. */
  after: textOrNullSchema,
  /** Attempt of the model or tool call, from 1: when the next attempt starts, the deltas of this one become invalid. */
  attempt: positiveSchema,
};
/** A piece of an unfinished answer. */
const delta = {
  ...ephemeral,
  /** Position in this step's answer, in UTF-16 units (`string.length`); text and reasoning are counted separately. */
  offset: countSchema,
  text: textSchema,
};
const call = { callId: textSchema, name: textSchema };
/** A tool call of an unfinished answer, with the JSON text of its arguments so far. */
export const writtenCallSchema = z.object({ ...call, index: countSchema, text: textSchema });
const end = {
  stopReason: stopReasonSchema,
  text: textSchema,
  steps: countSchema,
  toolCalls: countSchema,
  usage: usageSchema,
  costMicros: countOrNullSchema,
  /** The explanation of the stop reason; `null` if the turn ended normally. */
  message: textOrNullSchema,
};

/** The public events: dotted facts (docs/events.md). The same schema is used by code, streams, inspector and logs. */
export const troupeEventSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("lifecycle.changed"), ...common, status: lifecycleSchema }),
  z.object({
    type: z.literal("turn.started"),
    ...common,
    number: integerSchema,
    prompt: textSchema,
    trace: traceHeadersSchema.optional(),
  }),
  /** An input has arrived during the turn; `step` is the step whose model call sees it. */
  z.object({
    type: z.literal("turn.steered"),
    ...common,
    messageId: textSchema,
    /** The input's text. */
    prompt: textSchema,
    actorId: textOrNullSchema,
    /** The key that the caller chose. */
    key: optionalTextSchema,
  }),
  /** The result of a call is an answer of the agent (`endsTurn`): the message `messageId` of the assistant. */
  z.object({ type: z.literal("turn.answered"), ...common, callId: textSchema, messageId: textSchema }),
  z.object({
    type: z.literal("turn.waiting"),
    ...common /** `request`: for a person, a client tool or credentials. */,
    reason: z.enum(["paused", "budget", "request"]),
  }),
  z.object({ type: z.literal("turn.completed"), ...common, ...end }),
  z.object({ type: z.literal("turn.stopped"), ...common, ...end }),
  z.object({ type: z.literal("turn.failed"), ...common, ...end, error: storedErrorSchema.nullable() }),
  z.object({
    type: z.literal("step.started"),
    ...common,
    model: textSchema,
    /** The provider of the model, if the definition's model is made of others. */
    provider: optionalTextSchema,
    /** The settings of the model call, without `providerOptions`. Absent if there are none. */
    settings: callSettingsSchema.omit({ providerOptions: true }).optional(),
  }),
  z.object({
    type: z.literal("step.restarted"),
    ...common,
    attempt: integerSchema,
    error: storedErrorSchema,
    retryAt: integerSchema,
    /** The model of the next attempt, if it is another one, and its provider. */
    model: optionalTextSchema,
    provider: optionalTextSchema,
  }),
  z.object({ type: z.literal("step.completed"), ...common }),
  z.object({
    type: z.literal("model.responded"),
    ...common,
    model: textSchema,
    usage: usageSchema,
    costMicros: integerOrNullSchema,
    toolCalls: integerSchema,
    durationMs: integerSchema,
    /** Why the answer ended. */
    finishReason: finishReasonSchema.optional(),
  }),
  z.object({ type: z.literal("text.delta"), ...common, ...delta }),
  /**
   * The complete text of an unfinished answer; replaces the pieces shown before. Sent when a client has connected during the answer, or
   * has missed a piece. Deltas continue at its `offset`. Never sent after the end of its step.
   */
  z.object({
    type: z.literal("text.snapshot"),
    ...common,
    ...delta,
    /** Position of the next `text.delta`: the length of `text`. */
    offset: delta.offset,
    /** The reasoning so far; the next `reasoning.delta` starts at its length. `null` if the client keeps the pieces shown before. */
    reasoning: textOrNullSchema,
    /** The tool calls so far; the next `call.delta` of each starts at the length of its `text`. `undefined` if there are none. */
    calls: z.array(writtenCallSchema).optional(),
  }),
  z.object({ type: z.literal("reasoning.delta"), ...common, ...delta }),
  /**
   * A piece of the arguments of a tool call that the model is writing; the first one of a call has no text. Nothing runs before
   * `tool.started`: the arguments may be incomplete, and the call is void if the attempt fails.
   */
  z.object({
    type: z.literal("call.delta"),
    ...common,
    ...delta,
    ...call,
    /** Position of the call among those of the answer. */
    index: countSchema,
    /** Position of the piece in the JSON text of the arguments, in UTF-16 units. */
    offset: delta.offset,
  }),
  /**
   * The value of an unfinished answer so far, for an agent with an `output` schema: it replaces the value of the event before. It is not
   * validated, and members that have not arrived are missing.
   */
  z.object({ type: z.literal("output.delta"), ...common, ...ephemeral, output: jsonSchema }),
  z.object({
    type: z.literal("tool.started"),
    ...common,
    ...call,
    attempt: integerSchema,
    /** The queue in which it waits for a worker; `undefined` if it runs in its agent's process. */
    queue: optionalTextSchema,
  }),
  z.object({ type: z.literal("tool.progress"), ...common, ...ephemeral, ...call, update: jsonSchema }),
  z.object({
    type: z.literal("tool.completed"),
    ...common,
    ...call,
    durationMs: integerSchema,
    /** The result as data, if the tool gave it as such. */
    structured: jsonSchema.optional(),
  }),
  z.object({
    type: z.literal("tool.failed"),
    ...common,
    ...call,
    outcome: callOutcomeSchema,
    durationMs: integerSchema,
    error: storedErrorSchema.nullable(),
    /** The result as data, if the tool gave it as such. */
    structured: jsonSchema.optional(),
  }),
  z.object({
    type: z.literal("request.opened"),
    ...common,
    ...call,
    requestId: textSchema,
    kind: requestKindSchema,
    prompt: textSchema,
    expiresAt: integerOrNullSchema,
  }),
  z.object({
    type: z.literal("request.decided"),
    ...common,
    ...call,
    requestId: textSchema,
    kind: requestKindSchema,
    verdict: requestVerdictSchema,
    by: textOrNullSchema,
    reason: textOrNullSchema,
  }),
  z.object({
    type: z.literal("conversation.cleared"),
    ...common,
    by: textSchema,
    /** `all`: artifacts were also removed. */
    scope: z.enum(["conversation", "all"]),
  }),
  z.object({
    type: z.literal("context.compacted"),
    ...common,
    strategy: textSchema,
    /** Number of messages that the model no longer sees. */
    messages: integerSchema,
    hasSummary: flagSchema,
  }),
  z.object({
    type: z.literal("artifact.saved"),
    ...common,
    artifactId: textSchema,
    name: textSchema,
    version: integerSchema,
    contentType: textSchema,
    size: integerSchema,
  }),
  z.object({
    type: z.literal("subagent.spawned"),
    ...common,
    /** The call that spawned the subagent; `null` if code did. */
    callId: textOrNullSchema,
    childId: textSchema,
    definition: textSchema,
    /** `background`: the subagent continues after the turn. */
    mode: z.enum(["await", "background"]),
  }),
  z.object({
    type: z.literal("subagent.ended"),
    ...common,
    childId: textSchema,
    mode: z.enum(["await", "background"]),
    outcome: textSchema,
    stopReason: stopReasonSchema,
  }),
  z.object({
    type: z.literal("budget.warning"),
    ...common,
    accountId: textSchema,
    limit: limitNameSchema,
    used: z.number(),
    max: z.number(),
    /** The warning as text, with the holder of the account. */
    message: textSchema,
  }),
  z.object({
    type: z.literal("budget.exhausted"),
    ...common,
    accountId: textSchema,
    limit: limitNameSchema,
    /** In the limit's unit, if known: steps, tokens, micro-dollars, milliseconds, calls. */
    used: z.number().optional(),
    max: z.number().optional(),
    message: textSchema,
  }),
  z.object({
    type: z.literal("budget.changed"),
    ...common,
    accountId: textSchema,
    by: textSchema,
    /** All limits from now on, in their units. */
    limits: limitsSchema,
    /** The change as text. */
    message: textSchema,
  }),
  /**
   * How a limit that a team or an owner shares will be used at the present rate. Ephemeral: computed from the accounts at commits that
   * reserve or settle, when it has changed.
   */
  z.object({
    type: z.literal("budget.forecast"),
    ...common,
    after: ephemeral.after,
    ...forecastFields,
  }),
  z.object({ type: z.literal("warning"), ...common, code: textSchema, message: textSchema }),
]);
/** A fact about an agent, with its agent, turn and step. */
export type TroupeEvent = DeepReadonly<z.infer<typeof troupeEventSchema>>;
export type TroupeEventType = TroupeEvent["type"];
/** An event of one type. */
export type TroupeEventOf<Type extends TroupeEventType> = Extract<TroupeEvent, { type: Type }>;

type WithoutCommon<T> = T extends TroupeEvent ? Omit<T, keyof typeof common> : never;
/** An event without the fields that all events have. */
export type TroupeEventBody = WithoutCommon<TroupeEvent>;

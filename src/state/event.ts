import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";
import { limitNameSchema } from "../budget/index.ts";
import { callOutcomeSchema, storedErrorSchema } from "./execution.ts";
import { jsonSchema } from "./json.ts";
import { lifecycleSchema } from "./record.ts";
import { usageSchema } from "./model-call.ts";
import { requestKindSchema, requestVerdictSchema } from "./request.ts";
import { stopReasonSchema } from "./stop.ts";
import { traceHeadersSchema } from "./entry-parts.ts";

const common = {
  agentId: z.string(),
  /** Name of the agent's definition. */
  agentName: z.string(),
  parentAgentId: z.string().nullable(),
  rootAgentId: z.string(),
  sessionId: z.string().nullable(),
  turnId: z.string().nullable(),
  step: z.number().int().nonnegative().nullable(),
  /** Milliseconds since the epoch. */
  at: z.number().int(),
  /** Position among the tree's durable events; null for ephemeral ones. A client can continue after any of them. */
  cursor: z.string().nullable(),
};
/** Fields of ephemeral events, which are never stored: only live clients see them. */
const ephemeral = {
  /** Cursor of the last durable event before it, from which a client can continue. Null before the first. */
  after: z.string().nullable(),
  /** Attempt of the model or tool call, from 1: once the next attempt has begun, the deltas of this one are void. */
  attempt: z.number().int().positive(),
};
/** A piece of an unfinished answer. */
const delta = {
  ...ephemeral,
  /**
   * Where it begins in this step's answer, in UTF-16 units (`string.length`); text and reasoning are counted
   * separately.
   */
  offset: z.number().int().nonnegative(),
  text: z.string(),
};
const call = { callId: z.string(), name: z.string() };
const end = {
  stopReason: stopReasonSchema,
  text: z.string(),
  steps: z.number().int().nonnegative(),
  toolCalls: z.number().int().nonnegative(),
  usage: usageSchema,
  costMicros: z.number().int().nonnegative().nullable(),
  /** Why it stopped, in words; null if it ended normally. */
  message: z.string().nullable(),
};

/** The public events: dotted facts (docs/events.md). One schema for code, streams, inspector and logs. */
export const troupeEventSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("lifecycle.changed"), ...common, status: lifecycleSchema }),
  z.object({
    type: z.literal("turn.started"),
    ...common,
    number: z.number().int(),
    prompt: z.string(),
    trace: traceHeadersSchema.optional(),
  }),
  z.object({
    type: z.literal("turn.waiting"),
    ...common /** `request`: for a person, a client tool or credentials. */,
    reason: z.enum(["paused", "budget", "request"]),
  }),
  z.object({ type: z.literal("turn.completed"), ...common, ...end }),
  z.object({ type: z.literal("turn.stopped"), ...common, ...end }),
  z.object({ type: z.literal("turn.failed"), ...common, ...end, error: storedErrorSchema.nullable() }),
  z.object({ type: z.literal("step.started"), ...common, model: z.string() }),
  z.object({
    type: z.literal("step.restarted"),
    ...common,
    attempt: z.number().int(),
    error: storedErrorSchema,
    retryAt: z.number().int(),
  }),
  z.object({ type: z.literal("step.completed"), ...common }),
  z.object({
    type: z.literal("model.responded"),
    ...common,
    model: z.string(),
    usage: usageSchema,
    costMicros: z.number().int().nullable(),
    toolCalls: z.number().int(),
    durationMs: z.number().int(),
  }),
  z.object({ type: z.literal("text.delta"), ...common, ...delta }),
  /**
   * The whole of an unfinished answer; it replaces the pieces shown before. Sent after a client has (re)connected in
   * the middle of the answer, or has missed a piece. Deltas continue at its `offset`. None is sent after the end of its
   * step.
   */
  z.object({
    type: z.literal("text.snapshot"),
    ...common,
    ...delta,
    /** Where the next `text.delta` begins: the length of `text`. */
    offset: delta.offset,
    /** The reasoning so far: the next `reasoning.delta` begins at its length. Null: keep the pieces shown before. */
    reasoning: z.string().nullable(),
  }),
  z.object({ type: z.literal("reasoning.delta"), ...common, ...delta }),
  z.object({
    type: z.literal("tool.started"),
    ...common,
    ...call,
    attempt: z.number().int(),
    /** It waits for a worker of this queue. Absent: it runs in its agent's process. */
    queue: z.string().optional(),
  }),
  z.object({ type: z.literal("tool.progress"), ...common, ...ephemeral, ...call, update: jsonSchema }),
  z.object({ type: z.literal("tool.completed"), ...common, ...call, durationMs: z.number().int() }),
  z.object({
    type: z.literal("tool.failed"),
    ...common,
    ...call,
    outcome: callOutcomeSchema,
    durationMs: z.number().int(),
    error: storedErrorSchema.nullable(),
  }),
  z.object({
    type: z.literal("request.opened"),
    ...common,
    ...call,
    requestId: z.string(),
    kind: requestKindSchema,
    prompt: z.string(),
    expiresAt: z.number().int().nullable(),
  }),
  z.object({
    type: z.literal("request.decided"),
    ...common,
    ...call,
    requestId: z.string(),
    kind: requestKindSchema,
    verdict: requestVerdictSchema,
    by: z.string().nullable(),
    reason: z.string().nullable(),
  }),
  z.object({
    type: z.literal("conversation.cleared"),
    ...common,
    by: z.string(),
    /** `all`: artifacts were removed too. */
    scope: z.enum(["conversation", "all"]),
  }),
  z.object({
    type: z.literal("context.compacted"),
    ...common,
    strategy: z.string(),
    /** How many messages the model no longer sees. */
    messages: z.number().int(),
    hasSummary: z.boolean(),
  }),
  z.object({
    type: z.literal("artifact.saved"),
    ...common,
    artifactId: z.string(),
    name: z.string(),
    version: z.number().int(),
    contentType: z.string(),
    size: z.number().int(),
  }),
  z.object({
    type: z.literal("subagent.spawned"),
    ...common,
    /** The call that spawned it; null if code did. */
    callId: z.string().nullable(),
    childId: z.string(),
    definition: z.string(),
    /** `background`: it goes on after the turn. */
    mode: z.enum(["await", "background"]),
  }),
  z.object({
    type: z.literal("subagent.ended"),
    ...common,
    childId: z.string(),
    mode: z.enum(["await", "background"]),
    outcome: z.string(),
    stopReason: stopReasonSchema,
  }),
  z.object({
    type: z.literal("budget.warning"),
    ...common,
    accountId: z.string(),
    limit: limitNameSchema,
    used: z.number(),
    max: z.number(),
    /** The same in words, with the holder of the account. */
    message: z.string(),
  }),
  z.object({
    type: z.literal("budget.exhausted"),
    ...common,
    accountId: z.string(),
    limit: limitNameSchema,
    /** In the limit's own unit, where known: steps, tokens, micro-dollars, milliseconds, calls. */
    used: z.number().optional(),
    max: z.number().optional(),
    message: z.string(),
  }),
  z.object({ type: z.literal("warning"), ...common, code: z.string(), message: z.string() }),
]);
export type TroupeEvent = DeepReadonly<z.infer<typeof troupeEventSchema>>;
export type TroupeEventType = TroupeEvent["type"];
export type TroupeEventOf<Type extends TroupeEventType> = Extract<TroupeEvent, { type: Type }>;

type WithoutCommon<T> = T extends TroupeEvent ? Omit<T, keyof typeof common> : never;
/** An event without the fields that all events have. */
export type TroupeEventBody = WithoutCommon<TroupeEvent>;

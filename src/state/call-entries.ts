import { z } from "zod";
import { limitNameSchema, limitsSchema, settlementSchema } from "../budget/index.ts";
import { orderedSpawnSchema } from "./call-end.ts";
import {
  envelope,
  ofCall,
  ofStep,
  backgroundSchema,
  definitionRefSchema,
  gateVerdictSchema,
  refusalReasonSchema,
  toolKindSchema,
  turnOutcomeSchema,
  limitFiguresSchema,
} from "./entry-parts.ts";
import { callOutcomeSchema, storedErrorSchema } from "./execution.ts";
import { jsonSchema } from "./json.ts";
import { usageSchema } from "./model-call.ts";
import { requestKindSchema, requestVerdictSchema } from "./request.ts";
import { stopReasonSchema } from "./stop.ts";

export const callEntrySchemas = [
  z.object({
    type: z.literal("call.gated"),
    ...ofCall,
    name: z.string(),
    verdict: gateVerdictSchema,
    kind: toolKindSchema,
    effect: z.enum(["none", "keyed", "once"]),
    /** Validated arguments, as the tool gets them, also after a restart. */
    arguments: jsonSchema,
    argumentsHash: z.string(),
    /** A person has to approve exactly these arguments before it runs. */
    needsApproval: z.boolean().optional(),
    /** Why it may not run, in words for the model; null if it may. */
    message: z.string().nullable(),
  }),
  z.object({
    type: z.literal("tool.started"),
    ...ofCall,
    name: z.string(),
    attempt: z.number().int().positive(),
    effect: z.enum(["none", "keyed", "once"]),
    idempotencyKey: z.string(),
    accountId: z.string(),
    /**
     * Validated arguments of a call that only its schema gates: it has no `call.gated`, and the first attempt brings them.
     */
    arguments: jsonSchema.optional(),
    /** A worker of this queue runs it, in any process. Absent: the owner of the agent does. */
    queue: z.string().optional(),
    /** Its place in that queue, the lowest first. Absent: 0. */
    priority: z.number().int().nonnegative().optional(),
  }),
  z.object({
    type: z.literal("tool.retrying"),
    ...ofCall,
    attempt: z.number().int().positive(),
    error: storedErrorSchema,
    retryAt: z.number().int(),
  }),
  /** How far the tool's code has come, in its own words: it reads the last one when it runs again. */
  z.object({ type: z.literal("tool.noted"), ...ofCall, note: jsonSchema }),
  /** What the call has used elsewhere, as its code was told: counted on the accounts like a model call. */
  z.object({
    type: z.literal("tool.billed"),
    ...ofCall,
    /** Names the bill within the call: each is counted once. */
    key: z.string(),
    usage: usageSchema,
    settlement: settlementSchema,
  }),
  z.object({
    type: z.literal("tool.settled"),
    ...ofCall,
    name: z.string(),
    outcome: callOutcomeSchema,
    messageId: z.string(),
    durationMs: z.number().int().nonnegative(),
    error: storedErrorSchema.nullable(),
    artifactId: z.string().nullable(),
    /** A tool on the agent's own context: it has no entry for its start. */
    internal: z.literal(true).optional(),
    /** Hooks review it next: `afterEachTool`, and `onError` if it failed. */
    reviewDue: z.boolean().optional(),
    /** Messages of reports that this result contains: they are not added to history separately. */
    reports: z.array(z.string()).optional(),
  }),
  z.object({ type: z.literal("call.reviewed"), ...ofCall }),
  z.object({
    type: z.literal("request.opened"),
    ...ofCall,
    requestId: z.string(),
    kind: requestKindSchema,
    name: z.string(),
    argumentsHash: z.string(),
    /** The question, in words for a person. */
    prompt: z.string(),
    /** Milliseconds since the epoch; null: it never expires. */
    expiresAt: z.number().int().nullable(),
    /** The tool's own code asks, and gets the decision. */
    asked: z.literal(true).optional(),
  }),
  z.object({
    type: z.literal("request.decided"),
    ...ofCall,
    requestId: z.string(),
    kind: requestKindSchema,
    name: z.string(),
    verdict: requestVerdictSchema,
    /** The person who decided; null: nobody, it expired. */
    by: z.string().nullable(),
    reason: z.string().nullable(),
    /** The edited arguments, which replace the model's. */
    arguments: jsonSchema.optional(),
    /** The result of the caller's tool, or the person's answer. */
    result: z.object({ text: z.string(), isError: z.boolean() }).optional(),
  }),
  z.object({
    type: z.literal("context.expanded"),
    ...ofCall,
    /** The new number of messages of the conversation that the model sees. */
    size: z.number().int().positive(),
  }),
  z.object({ type: z.literal("context.loaded"), ...ofCall, callIds: z.array(z.string()) }),
  z.object({
    type: z.literal("child.spawned"),
    ...ofStep,
    /** The call that spawned it; absent if code did. */
    callId: z.string().optional(),
    childId: z.string(),
    childTurnId: z.string(),
    definition: definitionRefSchema,
    accountId: z.string(),
    /** Of the child's own account, below the turn's. Absent: none. */
    limits: limitsSchema.optional(),
    /** It goes on when the turn ends; the call does not wait for it. */
    background: backgroundSchema.optional(),
  }),
  z.object({
    type: z.literal("child.ended"),
    ...ofStep,
    callId: z.string().optional(),
    childId: z.string(),
    childTurnId: z.string(),
    outcome: turnOutcomeSchema,
    stopReason: stopReasonSchema,
    text: z.string(),
    error: storedErrorSchema.nullable(),
    leavesWork: z.boolean().optional(),
  }),
  /** A queued tool has ordered children, one of which gives its result; the agent's owner spawns them. */
  z.object({
    type: z.literal("child.ordered"),
    ...ofCall,
    spawns: z.array(orderedSpawnSchema),
    /** The child whose answer is the result. */
    awaits: z.string(),
    /** The text before the child's answer in the result. */
    prefix: z.string().optional(),
  }),
  /** A child that the tool's code spawned gives the tool's result. */
  z.object({
    type: z.literal("child.awaited"),
    ...ofCall,
    childId: z.string(),
    /** The text before the child's answer in the result. */
    prefix: z.string().optional(),
  }),
  /** The end of a child in the background has reached its parent, during a turn or between turns. */
  z.object({
    type: z.literal("child.reported"),
    ...envelope,
    turnId: z.string().optional(),
    childId: z.string(),
    childTurnId: z.string(),
    name: z.string(),
    outcome: turnOutcomeSchema,
    stopReason: stopReasonSchema,
    text: z.string(),
    error: storedErrorSchema.nullable(),
    /**
     * The message that reports it to the model: in history at once between turns, before the next model call within
     * one.
     */
    messageId: z.string(),
    actorId: z.string().nullable(),
    /** It calls for a turn, unless a model call of an open one sees it. */
    wakes: z.boolean(),
    leavesWork: z.boolean().optional(),
  }),
  /** A call waits for children in the background. */
  z.object({
    type: z.literal("call.waiting"),
    ...ofCall,
    childIds: z.array(z.string()),
    /** Those of them that are still open. */
    openIds: z.array(z.string()),
    /** How many of them it waits for. */
    for: z.enum(["all", "any"]),
    /** When the wait ends, in milliseconds since the epoch; null: only when they end. */
    until: z.number().int().nullable(),
  }),
  z.object({ type: z.literal("call.expired"), ...ofCall }),
  z.object({
    type: z.literal("artifact.saved"),
    ...ofStep,
    callId: z.string().optional(),
    artifactId: z.string(),
    name: z.string(),
    /** Counts from 1 over the artifacts of one name; set by the commit. */
    version: z.number().int().positive().optional(),
    contentType: z.string(),
    size: z.number().int().nonnegative(),
  }),
  z.object({
    type: z.literal("intent.refused"),
    ...ofStep,
    callId: z.string().optional(),
    intent: z.enum(["model.requested", "generate.requested", "tool.started", "child.spawned"]),
    reason: refusalReasonSchema,
    accountId: z.string().optional(),
    limit: limitNameSchema.optional(),
    /** The holder of the account, and its figures, if a limit refused it. */
    ...limitFiguresSchema.shape,
    /** The ancestor whose mark refused it, if a mark did. */
    agentId: z.string().optional(),
    /** The reason of an abort, if it was one. */
    message: z.string().optional(),
    /** What a refused `tool.started` brought of its call: the arguments, and the effect class that goes with them. */
    arguments: jsonSchema.optional(),
    effect: z.enum(["none", "keyed", "once"]).optional(),
  }),
] as const;

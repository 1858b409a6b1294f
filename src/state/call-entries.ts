import { z } from "zod";
import { limitNameSchema } from "../budget/index.ts";
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
} from "./entry-parts.ts";
import { callOutcomeSchema, storedErrorSchema } from "./execution.ts";
import { jsonSchema } from "./json.ts";
import { limitFiguresSchema } from "./limit-reached.ts";
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
    /** Validated arguments; what the tool gets, also after a restart. */
    arguments: jsonSchema,
    argumentsHash: z.string(),
    /** A person has to approve these very arguments before it runs. */
    needsApproval: z.boolean().optional(),
    /** Why not, in words for the model. */
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
    /** It is run by whoever works on this queue, here or elsewhere. Absent: by the owner of the agent. */
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
  z.object({
    type: z.literal("tool.settled"),
    ...ofCall,
    name: z.string(),
    outcome: callOutcomeSchema,
    messageId: z.string(),
    durationMs: z.number().int().nonnegative(),
    error: storedErrorSchema.nullable(),
    artifactId: z.string().nullable(),
    /** A tool on the agent's own context has run: it has no entry for its beginning. */
    internal: z.literal(true).optional(),
    /** Hooks look at it next: `afterEachTool`, and `onError` when it failed. */
    reviewDue: z.boolean().optional(),
    /** Messages of reports that this result holds: they enter history in no other way. */
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
    /** What is asked, in words for a person. */
    prompt: z.string(),
    /** Milliseconds since the epoch; null: it waits for ever. */
    expiresAt: z.number().int().nullable(),
  }),
  z.object({
    type: z.literal("request.decided"),
    ...ofCall,
    requestId: z.string(),
    kind: requestKindSchema,
    name: z.string(),
    verdict: requestVerdictSchema,
    /** Who decided; null: nobody, it expired. */
    by: z.string().nullable(),
    reason: z.string().nullable(),
    /** Arguments that take the place of the model's, where they were edited. */
    arguments: jsonSchema.optional(),
    /** What the caller's tool gave, or the person answered. */
    result: z.object({ text: z.string(), isError: z.boolean() }).optional(),
  }),
  z.object({
    type: z.literal("context.expanded"),
    ...ofCall,
    /** Messages of the conversation that the model sees from now on. */
    size: z.number().int().positive(),
  }),
  z.object({ type: z.literal("context.loaded"), ...ofCall, callIds: z.array(z.string()) }),
  z.object({
    type: z.literal("child.spawned"),
    ...ofStep,
    /** The call that spawned it; absent when code did. */
    callId: z.string().optional(),
    childId: z.string(),
    childTurnId: z.string(),
    definition: definitionRefSchema,
    accountId: z.string(),
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
  /** A queued tool has asked for children and has left its result to one of them; the agent's owner spawns them. */
  z.object({
    type: z.literal("child.ordered"),
    ...ofCall,
    spawns: z.array(orderedSpawnSchema),
    /** The child whose answer is the result. */
    awaits: z.string(),
    /** What comes before the child's answer in the result. */
    prefix: z.string().optional(),
  }),
  /** A tool has left its result to a child that its code spawned. */
  z.object({
    type: z.literal("child.awaited"),
    ...ofCall,
    childId: z.string(),
    /** What comes before the child's answer in the result. */
    prefix: z.string().optional(),
  }),
  /** The end of a child in the background has reached its parent, in a turn or between two. */
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
    /** The message that tells the model of it: in history at once between turns, within one before the next model call. */
    messageId: z.string(),
    actorId: z.string().nullable(),
    /** It calls for a turn, if no model call of an open one sees it. */
    wakes: z.boolean(),
    leavesWork: z.boolean().optional(),
  }),
  /** A call waits for children in the background. */
  z.object({
    type: z.literal("call.waiting"),
    ...ofCall,
    childIds: z.array(z.string()),
    /** Those of them that have not ended. */
    openIds: z.array(z.string()),
    /** How many of them have to end. */
    for: z.enum(["all", "any"]),
    /** When it waits no longer, in milliseconds since the epoch; null: it waits until they end. */
    until: z.number().int().nullable(),
  }),
  z.object({ type: z.literal("call.expired"), ...ofCall }),
  z.object({
    type: z.literal("artifact.saved"),
    ...ofStep,
    callId: z.string().optional(),
    artifactId: z.string(),
    name: z.string(),
    /** Counts from 1 over the artifacts of one name; given by the commit. */
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
    /** Whose account it is, and its figures, where a limit refused it. */
    ...limitFiguresSchema.shape,
    /** The ancestor whose mark refused it, where a mark did. */
    agentId: z.string().optional(),
    /** Why it was aborted, where it was. */
    message: z.string().optional(),
  }),
] as const;

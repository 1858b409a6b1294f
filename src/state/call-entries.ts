import { z } from "zod";
import {
  countOrNullSchema,
  countSchema,
  flagSchema,
  integerOrNullSchema,
  integerSchema,
  optionalCountSchema,
  optionalFlagSchema,
  optionalPositiveSchema,
  optionalTextSchema,
  positiveSchema,
  textOrNullSchema,
  textSchema,
} from "../base/index.ts";
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
import { answerResultSchema, requestKindSchema, requestVerdictSchema } from "./request.ts";
import { stopReasonSchema } from "./stop.ts";

export const callEntrySchemas = [
  z.object({
    type: z.literal("call.gated"),
    ...ofCall,
    name: textSchema,
    verdict: gateVerdictSchema,
    kind: toolKindSchema,
    effect: z.enum(["none", "keyed", "once"]),
    /** Validated arguments for the tool, also after a restart. */
    arguments: jsonSchema,
    argumentsHash: textSchema,
    /** Whether a person has to approve exactly these arguments before the call runs. */
    needsApproval: optionalFlagSchema,
    /** Why the call may not run, as a text for the model; `null` if it may. */
    message: textOrNullSchema,
  }),
  z.object({
    type: z.literal("tool.started"),
    ...ofCall,
    name: textSchema,
    attempt: positiveSchema,
    effect: z.enum(["none", "keyed", "once"]),
    idempotencyKey: textSchema,
    accountId: textSchema,
    /** Validated arguments of a call that is gated only by its schema: it has no `call.gated`, and the first attempt contains them. */
    arguments: jsonSchema.optional(),
    /** The queue whose workers run the call, in any process; `undefined` if the owner of the agent runs it. */
    queue: optionalTextSchema,
    /** Its priority in that queue: the lowest runs first. Default 0. */
    priority: optionalCountSchema,
    /** No code runs: in a stubbed session a stub gives the result. */
    stubbed: z.literal(true).optional(),
  }),
  z.object({
    type: z.literal("tool.retrying"),
    ...ofCall,
    attempt: positiveSchema,
    error: storedErrorSchema,
    retryAt: integerSchema,
  }),
  /** Progress of the tool's code in its own format; the code reads the last one when it runs again. */
  z.object({ type: z.literal("tool.noted"), ...ofCall, note: jsonSchema }),
  /** Usage elsewhere, as reported by the call's code; counted on the accounts like a model call. */
  z.object({
    type: z.literal("tool.billed"),
    ...ofCall,
    /** Identifies the bill within the call: each is counted once. */
    key: textSchema,
    usage: usageSchema,
    settlement: settlementSchema,
  }),
  z.object({
    type: z.literal("tool.settled"),
    ...ofCall,
    name: textSchema,
    outcome: callOutcomeSchema,
    messageId: textSchema,
    durationMs: countSchema,
    error: storedErrorSchema.nullable(),
    artifactId: textOrNullSchema,
    /** The result as data, for programs; absent if the tool gave none. */
    structured: jsonSchema.optional(),
    /** A tool on the agent's own context; its start is not recorded. */
    internal: z.literal(true).optional(),
    /** Whether hooks review it next: `afterEachTool`, and `onError` if it failed. */
    reviewDue: optionalFlagSchema,
    /** In a fork: the recorded call whose result this is, by `recordedCallId`. */
    recorded: optionalTextSchema,
    /** In a stubbed session: the stub that gave the result, as an index in the `stubs` of the agent; `null` if none answers the call. */
    stub: countOrNullSchema.optional(),
    /** Messages of reports that this result contains; they are not added to history separately. */
    reports: z.array(textSchema).optional(),
    /** The result may be the answer of the turn: the tool has `endsTurn`, and its call has succeeded. */
    endsTurn: z.literal(true).optional(),
  }),
  z.object({ type: z.literal("call.reviewed"), ...ofCall }),
  z.object({
    type: z.literal("request.opened"),
    ...ofCall,
    requestId: textSchema,
    kind: requestKindSchema,
    name: textSchema,
    argumentsHash: textSchema,
    /** The question for a person. */
    prompt: textSchema,
    /** Milliseconds since the epoch; `null` if it never expires. */
    expiresAt: integerOrNullSchema,
    /** Set if the tool's own code asks; it gets the decision. */
    asked: z.literal(true).optional(),
  }),
  z.object({
    type: z.literal("request.decided"),
    ...ofCall,
    requestId: textSchema,
    kind: requestKindSchema,
    name: textSchema,
    verdict: requestVerdictSchema,
    /** The person who decided; `null` if the request expired. */
    by: textOrNullSchema,
    reason: textOrNullSchema,
    /** The edited arguments, which replace the model's. */
    arguments: jsonSchema.optional(),
    /** The result of the caller's tool, or the person's answer. */
    result: answerResultSchema.optional(),
  }),
  z.object({
    type: z.literal("context.expanded"),
    ...ofCall,
    /** The new number of messages of the conversation that the model sees. */
    size: positiveSchema,
  }),
  z.object({ type: z.literal("context.loaded"), ...ofCall, callIds: z.array(textSchema) }),
  z.object({
    type: z.literal("child.spawned"),
    ...ofStep,
    /** The call that spawned the child; absent if code did. */
    callId: optionalTextSchema,
    childId: textSchema,
    childTurnId: textSchema,
    definition: definitionRefSchema,
    accountId: textSchema,
    /** Limits of the child's own account, below the turn's; `undefined` if there are none. */
    limits: limitsSchema.optional(),
    /** Set if the child continues after the turn; the call does not wait for it. */
    background: backgroundSchema.optional(),
  }),
  z.object({
    type: z.literal("child.ended"),
    ...ofStep,
    callId: optionalTextSchema,
    childId: textSchema,
    childTurnId: textSchema,
    outcome: turnOutcomeSchema,
    stopReason: stopReasonSchema,
    text: textSchema,
    error: storedErrorSchema.nullable(),
    leavesWork: optionalFlagSchema,
  }),
  /** A queued tool has ordered children, one of which provides its result; the agent's owner spawns them. */
  z.object({
    type: z.literal("child.ordered"),
    ...ofCall,
    spawns: z.array(orderedSpawnSchema),
    /** The child whose answer is the result. */
    awaits: textSchema,
    /** The text that precedes the child's answer in the result. */
    prefix: optionalTextSchema,
  }),
  /** A child that the tool's code spawned provides the tool's result. */
  z.object({
    type: z.literal("child.awaited"),
    ...ofCall,
    childId: textSchema,
    /** The text that precedes the child's answer in the result. */
    prefix: optionalTextSchema,
  }),
  /** The end of a background child was reported to its parent, during a turn or between turns. */
  z.object({
    type: z.literal("child.reported"),
    ...envelope,
    turnId: optionalTextSchema,
    childId: textSchema,
    childTurnId: textSchema,
    name: textSchema,
    outcome: turnOutcomeSchema,
    stopReason: stopReasonSchema,
    text: textSchema,
    error: storedErrorSchema.nullable(),
    /**
     * The message that reports the end to the model: added to history at once between turns, before the next model call during a turn.
     */
    messageId: textSchema,
    actorId: textOrNullSchema,
    /** Whether it requires a turn, unless a model call of an open one sees it. */
    wakes: flagSchema,
    leavesWork: optionalFlagSchema,
  }),
  /** A call waits for background children. */
  z.object({
    type: z.literal("call.waiting"),
    ...ofCall,
    childIds: z.array(textSchema),
    /** The children that are still open. */
    openIds: z.array(textSchema),
    /** Whether it waits for all of them or for any. */
    for: z.enum(["all", "any"]),
    /** Time limit of the wait, in milliseconds since the epoch; `null` if there is none. */
    until: integerOrNullSchema,
  }),
  z.object({ type: z.literal("call.expired"), ...ofCall }),
  z.object({
    type: z.literal("artifact.saved"),
    ...ofStep,
    callId: optionalTextSchema,
    artifactId: textSchema,
    name: textSchema,
    /** Counted from 1 per name; set by the commit. */
    version: optionalPositiveSchema,
    contentType: textSchema,
    size: countSchema,
  }),
  z.object({
    type: z.literal("intent.refused"),
    ...ofStep,
    callId: optionalTextSchema,
    intent: z.enum(["model.requested", "generate.requested", "tool.started", "child.spawned"]),
    reason: refusalReasonSchema,
    accountId: optionalTextSchema,
    limit: limitNameSchema.optional(),
    /** The holder of the account and the amounts, if a limit refused the intent. */
    ...limitFiguresSchema.shape,
    /** The minimum that the intent would have used of the limit, in its unit. `undefined` for a time limit, and for `mustWait`. */
    needed: z.number().optional(),
    /** The ancestor whose mark refused the intent, if a mark did. */
    agentId: optionalTextSchema,
    /** The reason of the abort, if the mark is one. */
    message: optionalTextSchema,
    /** The request that asks a person for more, if one does. */
    request: z.object({ requestId: textSchema, callId: textSchema, name: textSchema, prompt: textSchema }).optional(),
    /** The arguments of a refused `tool.started`, and its effect class. */
    arguments: jsonSchema.optional(),
    effect: z.enum(["none", "keyed", "once"]).optional(),
  }),
] as const;

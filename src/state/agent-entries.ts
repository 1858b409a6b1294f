import { z } from "zod";
import {
  countOrNullSchema,
  countSchema,
  flagSchema,
  optionalFlagSchema,
  optionalPositiveSchema,
  optionalTextSchema,
  positiveSchema,
  textOrNullSchema,
  textSchema,
} from "../base/index.ts";
import { limitNameSchema, limitsSchema } from "../budget/index.ts";
import {
  envelope,
  ofStep,
  ofTurn,
  definitionRefSchema,
  grantedToolSchema,
  hookCountsSchema,
  hookNameSchema,
  hookPatchSchema,
  inputKeySchema,
  turnOutcomeSchema,
  wakingReportSchema,
  traceHeadersSchema,
  accountHolderSchema,
} from "./entry-parts.ts";
import { storedErrorSchema } from "./execution.ts";
import { jsonSchema } from "./json.ts";
import { contentSchema } from "./message.ts";
import { lifecycleSchema } from "./record.ts";
import { budgetDecisionSchema } from "./request.ts";
import { callSettingsSchema, modelToolSchema, usageSchema } from "./model-call.ts";
import { stopReasonSchema, stopSignalSchema } from "./stop.ts";

export const agentEntrySchemas = [
  z.object({ type: z.literal("agent.starting"), ...envelope }),
  z.object({ type: z.literal("agent.started"), ...envelope, definition: definitionRefSchema }),
  z.object({
    type: z.literal("agent.pausing"),
    ...envelope,
    turnId: optionalTextSchema,
    by: textSchema,
    /** The model call in flight was dropped; it is repeated after the pause. */
    now: optionalFlagSchema,
  }),
  z.object({ type: z.literal("agent.paused"), ...envelope, turnId: optionalTextSchema }),
  z.object({
    type: z.literal("agent.resumed"),
    ...envelope,
    turnId: optionalTextSchema,
    by: textSchema,
    to: lifecycleSchema,
  }),
  z.object({ type: z.literal("agent.shutdown"), ...envelope }),
  /** The first entry of an agent that was created with a conversation; it has the epoch of its first owner. */
  z.object({ type: z.literal("conversation.seeded"), ...envelope, messageIds: z.array(textSchema) }),
  z.object({
    type: z.literal("conversation.cleared"),
    ...envelope,
    by: textSchema,
    /** `all`: artifacts are also removed. */
    scope: z.enum(["conversation", "all"]),
  }),
  z.object({
    type: z.literal("budget.changed"),
    ...envelope,
    turnId: optionalTextSchema,
    by: textSchema,
    accountId: textSchema,
    limits: limitsSchema,
    before: limitsSchema,
  }),
  z.object({
    type: z.literal("warning"),
    ...envelope,
    turnId: optionalTextSchema,
    code: textSchema,
    message: textSchema,
    /** For `definition_changed`: the definition under which the turn continues. */
    definition: definitionRefSchema.optional(),
  }),
] as const;

export const turnEntrySchemas = [
  z.object({
    type: z.literal("turn.started"),
    ...ofTurn,
    number: positiveSchema,
    inputMessageIds: z.array(textSchema),
    actorId: textOrNullSchema,
    definition: definitionRefSchema,
    model: z.object({ name: textSchema, provider: textSchema }),
    tools: z.array(grantedToolSchema),
    /** Tools that the turn's caller runs, in addition to those of the definition. `undefined` if there are none. */
    clientTools: z.array(modelToolSchema).optional(),
    /** Settings of the turn's model calls, over those of the definition. `undefined` if there are none. */
    settings: callSettingsSchema.optional(),
    limits: limitsSchema,
    accountId: textSchema,
    maxConsecutiveToolFailures: positiveSchema,
    hooks: hookCountsSchema,
    /** Whether the last answer must fit a schema. */
    checksOutput: optionalFlagSchema,
    /** Initial number of messages of the conversation that the model sees; `undefined` if its history compiler has no window. */
    contextWindowSize: optionalPositiveSchema,
    /** The child whose end started the turn. */
    wokenBy: optionalTextSchema,
    /** The span in which the turn was requested. */
    trace: traceHeadersSchema.optional(),
    /** Earlier reports that require a turn, unless this turn makes a model call that sees them. */
    waking: z.array(wakingReportSchema).optional(),
  }),
  /** An input that arrived during the turn. Its message is held until the next model call. */
  z.object({
    type: z.literal("turn.steered"),
    ...ofStep,
    /** Identifies the command. */
    steerId: textSchema,
    /** The key that the caller chose; `undefined` if there is none. */
    inputKey: inputKeySchema.optional(),
    messageId: textSchema,
    content: contentSchema,
    actorId: textOrNullSchema,
  }),
  z.object({
    type: z.literal("instructions.resolved"),
    ...ofTurn,
    text: textSchema,
    /** Set for a text that a fork has put in the place of the definition's instructions. */
    edited: z.literal(true).optional(),
  }),
  z.object({
    type: z.literal("hook.applied"),
    ...ofStep,
    /** The call that the hook reviewed, for `afterEachTool` and `onError`. */
    callId: optionalTextSchema,
    /** The message of `turn.steered` that an `afterUserInput` hook looked at; `undefined` for the input that opened the turn. */
    inputId: optionalTextSchema,
    hook: hookNameSchema,
    plugin: textSchema,
    /** Position in the order of registration, from 0. */
    index: countSchema,
    patch: hookPatchSchema,
  }),
  z.object({
    type: z.literal("hooks.settled"),
    ...ofStep,
    /** The hooks that have all run: those of the turn's input, of an answer, or of the turn's end. */
    phase: z.enum(["input", "answer", "end"]),
  }),
  z.object({ type: z.literal("messages.released"), ...ofTurn, messageIds: z.array(textSchema) }),
  z.object({
    type: z.literal("output.checked"),
    ...ofStep,
    messageId: textSchema,
    valid: flagSchema,
    /** The parsed output, with transforms applied. */
    value: jsonSchema.optional(),
    /** The mistakes, as a text for the model. */
    issues: optionalTextSchema,
    /** The message that asks the model to repair its answer; `undefined` if the runtime does not ask again. */
    repairMessageId: optionalTextSchema,
    /** The call whose result was checked as the turn's answer (`endsTurn`); if valid, `messageId` is the answer made of it. */
    callId: optionalTextSchema,
  }),
  z.object({
    type: z.literal("context.compacted"),
    ...ofStep,
    strategy: textSchema,
    /** The last message that the model no longer sees. */
    through: textSchema,
    /** The message that replaces all messages up to `through`; `null` if they are hidden without a summary. */
    summaryMessageId: textOrNullSchema,
    /** Earlier messages (up to `through`) that the model still sees. */
    kept: z.array(textSchema),
    /** Number of messages that the model no longer sees. */
    messages: countSchema,
  }),
  z.object({ type: z.literal("turn.waiting"), ...ofTurn, requestIds: z.array(textSchema) }),
  z.object({ type: z.literal("stop.signalled"), ...ofTurn, signal: stopSignalSchema }),
  z.object({ type: z.literal("timer.due"), ...ofTurn, timerId: textSchema, signal: stopSignalSchema }),
  z.object({
    type: z.literal("budget.warning"),
    ...ofTurn,
    accountId: textSchema,
    holder: accountHolderSchema.optional(),
    limit: limitNameSchema,
    used: z.number(),
    max: z.number(),
  }),
  z.object({
    type: z.literal("budget.freed"),
    ...ofTurn,
    /** The decision of a person on a request for more budget, if it is the reason. */
    decided: budgetDecisionSchema.optional(),
  }),
  z.object({ type: z.literal("effect.failed"), ...ofTurn, effect: textSchema, error: storedErrorSchema }),
  z.object({
    type: z.literal("turn.ended"),
    ...ofTurn,
    number: positiveSchema,
    outcome: turnOutcomeSchema,
    stopReason: stopReasonSchema,
    /** The decisive signal, if there was one; it includes the account. */
    signal: stopSignalSchema.nullable(),
    /** The message with the complete or partial answer. */
    outputMessageId: textOrNullSchema,
    steps: countSchema,
    toolCalls: countSchema,
    usage: usageSchema,
    costMicros: countOrNullSchema,
    error: storedErrorSchema.nullable(),
    lifecycle: lifecycleSchema,
    /** Reports that require a turn and that no model call has seen. */
    waking: z.array(wakingReportSchema).optional(),
  }),
] as const;

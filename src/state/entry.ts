import { z } from "zod";
import {
  limitNameSchema,
  limitsSchema,
  priceSchema,
  reservationAskSchema,
  reservationSchema,
  settlementSchema,
} from "../budget/index.ts";
import {
  definitionRefSchema,
  gateVerdictSchema,
  grantedToolSchema,
  hookNameSchema,
  hookPatchSchema,
  refusalReasonSchema,
  turnOutcomeSchema,
} from "./entry-parts.ts";
import { callOutcomeSchema, storedErrorSchema } from "./execution.ts";
import { jsonSchema } from "./json.ts";
import { lifecycleSchema } from "./lifecycle.ts";
import { finishReasonSchema, modelResponseSchema, usageSchema } from "./model-call.ts";
import { stopReasonSchema, stopSignalSchema } from "./stop.ts";

/**
 * The journal's union. Whatever pure code did not decide is an entry; the fold over the entries is the state.
 * The envelope (`seq`, `at`, `epoch`) is given by the writer; the address (`turnId`, `callId`) says which machines hear it.
 * Facts tell what happened. Intents (`model.requested`, `generate.requested`, `tool.started`, `child.spawned`) tell what
 * is about to be done to the world; the commit grants them or puts `intent.refused` in their place at the same seq.
 */
const envelope = {
  seq: z.number().int().positive(),
  /** Milliseconds since the epoch, never going back within a journal; for people. */
  at: z.number().int(),
  epoch: z.number().int().positive(),
};
const ofTurn = { ...envelope, turnId: z.string() };
const ofStep = { ...ofTurn, step: z.number().int().positive() };
const ofCall = { ...ofStep, callId: z.string() };

export const agentEntrySchemas = [
  z.object({ type: z.literal("agent.starting"), ...envelope }),
  z.object({ type: z.literal("agent.started"), ...envelope, definition: definitionRefSchema }),
  z.object({ type: z.literal("agent.pausing"), ...envelope, turnId: z.string().optional(), by: z.string() }),
  z.object({ type: z.literal("agent.paused"), ...envelope, turnId: z.string().optional() }),
  z.object({
    type: z.literal("agent.resumed"),
    ...envelope,
    turnId: z.string().optional(),
    by: z.string(),
    to: lifecycleSchema,
  }),
  z.object({ type: z.literal("agent.shutdown"), ...envelope }),
  z.object({
    type: z.literal("warning"),
    ...envelope,
    turnId: z.string().optional(),
    code: z.string(),
    message: z.string(),
  }),
] as const;

export const turnEntrySchemas = [
  z.object({
    type: z.literal("turn.started"),
    ...ofTurn,
    number: z.number().int().positive(),
    inputMessageIds: z.array(z.string()),
    actorId: z.string().nullable(),
    definition: definitionRefSchema,
    model: z.object({ name: z.string(), provider: z.string() }),
    tools: z.array(grantedToolSchema),
    limits: limitsSchema,
    accountId: z.string(),
    maxConsecutiveToolFailures: z.number().int().positive(),
    hooks: z.object({ beforeLlm: z.number().int(), afterTools: z.number().int() }),
  }),
  z.object({ type: z.literal("instructions.resolved"), ...ofTurn, text: z.string() }),
  z.object({
    type: z.literal("hook.applied"),
    ...ofStep,
    hook: hookNameSchema,
    plugin: z.string(),
    /** Place in the order of registration, from 0. */
    index: z.number().int().nonnegative(),
    patch: hookPatchSchema,
  }),
  z.object({ type: z.literal("stop.signalled"), ...ofTurn, signal: stopSignalSchema }),
  z.object({ type: z.literal("continuation.requested"), ...ofTurn, source: z.string() }),
  z.object({ type: z.literal("timer.due"), ...ofTurn, timerId: z.string(), signal: stopSignalSchema }),
  z.object({
    type: z.literal("budget.warning"),
    ...ofTurn,
    accountId: z.string(),
    limit: limitNameSchema,
    used: z.number(),
    max: z.number(),
  }),
  z.object({ type: z.literal("budget.freed"), ...ofTurn }),
  z.object({ type: z.literal("effect.failed"), ...ofTurn, effect: z.string(), error: storedErrorSchema }),
  z.object({
    type: z.literal("turn.ended"),
    ...ofTurn,
    number: z.number().int().positive(),
    outcome: turnOutcomeSchema,
    stopReason: stopReasonSchema,
    /** The signal that decided, where there was one: it names the account. */
    signal: stopSignalSchema.nullable(),
    /** The message that holds the answer, or the partial one. */
    outputMessageId: z.string().nullable(),
    steps: z.number().int().nonnegative(),
    toolCalls: z.number().int().nonnegative(),
    usage: usageSchema,
    costMicros: z.number().int().nonnegative().nullable(),
    error: storedErrorSchema.nullable(),
    lifecycle: lifecycleSchema,
  }),
] as const;

export const modelEntrySchemas = [
  z.object({
    type: z.literal("model.requested"),
    ...ofStep,
    attempt: z.number().int().positive(),
    model: z.string(),
    promptHash: z.string(),
    /** Id of the message that the answer will become. */
    messageId: z.string(),
    ask: reservationAskSchema,
    price: priceSchema.nullable(),
    /** Filled in by the commit that grants it. */
    reservation: reservationSchema.nullable(),
  }),
  z.object({
    type: z.literal("model.responded"),
    ...ofStep,
    attempt: z.number().int().positive(),
    model: z.string(),
    messageId: z.string(),
    hasText: z.boolean(),
    calls: z.array(z.object({ callId: z.string(), name: z.string() })),
    usage: usageSchema,
    costMicros: z.number().int().nonnegative().nullable(),
    finishReason: finishReasonSchema,
    durationMs: z.number().int().nonnegative(),
    settlement: settlementSchema,
  }),
  z.object({
    type: z.literal("model.failed"),
    ...ofStep,
    attempt: z.number().int().positive(),
    model: z.string(),
    error: storedErrorSchema,
    /** When the next attempt may start; null: there is none. */
    retryAt: z.number().int().nullable(),
    /** What it was billed, as far as known. */
    usage: usageSchema.nullable(),
    settlement: settlementSchema.nullable(),
  }),
  z.object({
    type: z.literal("generate.requested"),
    ...ofStep,
    /** The run that asks: a hook or a call, and its count within that run, from 0. */
    run: z.string(),
    index: z.number().int().nonnegative(),
    model: z.string(),
    promptHash: z.string(),
    ask: reservationAskSchema,
    reservation: reservationSchema.nullable(),
  }),
  z.object({
    type: z.literal("generate.responded"),
    ...ofStep,
    run: z.string(),
    index: z.number().int().nonnegative(),
    promptHash: z.string(),
    response: modelResponseSchema,
    costMicros: z.number().int().nonnegative().nullable(),
    settlement: settlementSchema,
  }),
  z.object({
    type: z.literal("generate.failed"),
    ...ofStep,
    run: z.string(),
    index: z.number().int().nonnegative(),
    error: storedErrorSchema,
    usage: usageSchema.nullable(),
    settlement: settlementSchema,
  }),
] as const;

export const callEntrySchemas = [
  z.object({
    type: z.literal("call.gated"),
    ...ofCall,
    name: z.string(),
    verdict: gateVerdictSchema,
    kind: z.enum(["function", "subagent", "internal"]),
    effect: z.enum(["none", "keyed", "once"]),
    /** Validated arguments; what the tool gets, also after a restart. */
    arguments: jsonSchema,
    argumentsHash: z.string(),
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
  }),
  z.object({
    type: z.literal("child.spawned"),
    ...ofStep,
    /** The call that spawned it; absent when code did. */
    callId: z.string().optional(),
    childId: z.string(),
    childTurnId: z.string(),
    definition: definitionRefSchema,
    accountId: z.string(),
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
  }),
  z.object({
    type: z.literal("artifact.saved"),
    ...ofStep,
    callId: z.string().optional(),
    artifactId: z.string(),
    name: z.string(),
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
    /** The ancestor whose mark refused it, where a mark did. */
    agentId: z.string().optional(),
  }),
] as const;

export const entrySchema = z.discriminatedUnion("type", [
  ...agentEntrySchemas,
  ...turnEntrySchemas,
  ...modelEntrySchemas,
  ...callEntrySchemas,
]);
export type Entry = z.infer<typeof entrySchema>;
export type EntryType = Entry["type"];
export type EntryOf<Type extends EntryType> = Extract<Entry, { type: Type }>;

type WithoutEnvelope<T> = T extends Entry ? Omit<T, "seq" | "at" | "epoch"> : never;
/** What effects hand to the host; the host adds the envelope. */
export type EntryBody = WithoutEnvelope<Entry>;

export const intentTypes = ["model.requested", "generate.requested", "tool.started", "child.spawned"] as const;
export type IntentType = (typeof intentTypes)[number];
export type Intent = EntryOf<IntentType>;
export type IntentBody = WithoutEnvelope<Intent>;
export type Fact = Exclude<Entry, Intent>;
export type FactBody = Exclude<EntryBody, IntentBody>;
export type Refusal = EntryOf<"intent.refused">;

export function isIntent(entry: Entry): entry is Intent {
  return (intentTypes as readonly string[]).includes(entry.type);
}

/** The address's parts; absent ones are null. */
export function addressOf(entry: Entry): { turnId: string | null; callId: string | null } {
  return {
    turnId: "turnId" in entry && entry.turnId !== undefined ? entry.turnId : null,
    callId: "callId" in entry && entry.callId !== undefined ? entry.callId : null,
  };
}

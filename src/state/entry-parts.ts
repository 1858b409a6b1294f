import { z } from "zod";
import {
  countSchema,
  flagSchema,
  integerSchema,
  optionalTextSchema,
  positiveSchema,
  textOrNullSchema,
  textSchema,
} from "../base/index.ts";
import type { DeepReadonly, TraceHeaders } from "../base/index.ts";
import { contentSchema } from "./message.ts";
import { callSettingsSchema } from "./model-call.ts";
import { stopReasonSchema } from "./stop.ts";

/**
 * How a tool is run: by our own code, by an agent, by the runtime on the agent's own context, by the agent's caller (`client`: the turn
 * waits for the answer), or by the runtime on the agent's own subagents (`control`).
 */
export const toolKindSchema = z.enum(["function", "subagent", "internal", "client", "control"]);
export type ToolKind = DeepReadonly<z.infer<typeof toolKindSchema>>;

/** A granted tool with its effect class, which decides whether a call may be repeated (docs/tools.md). Journalled with each turn. */
export const grantedToolSchema = z.object({
  name: textSchema,
  kind: toolKindSchema,
  effect: z.enum(["none", "keyed", "once"]),
  /** The queue whose workers run its calls; `undefined` if the owner of the agent runs them. */
  queue: optionalTextSchema,
});
export type GrantedTool = DeepReadonly<z.infer<typeof grantedToolSchema>>;

export const definitionRefSchema = z.object({ name: textSchema, hash: textSchema });
export type DefinitionRef = DeepReadonly<z.infer<typeof definitionRefSchema>>;

/** A message that is added to history once every call of its round has its result. */
export const heldMessageSchema = z.object({
  messageId: textSchema,
  role: z.enum(["user", "system", "assistant"]),
  content: contentSchema,
});
export type HeldMessage = DeepReadonly<z.infer<typeof heldMessageSchema>>;

/** A hook's changes to one tool call before it is gated. */
export const callPatchSchema = z.object({
  callId: textSchema,
  /** Replaces the model's arguments, as JSON text; validated in the same way. */
  arguments: optionalTextSchema,
  /** Why the call may not run, as a text for the model. */
  denied: optionalTextSchema,
});
export type CallPatch = DeepReadonly<z.infer<typeof callPatchSchema>>;

/**
 * The changes of one hook (docs/hooks.md). Added messages get the origin `hook:<plugin>` in the history; edits and removals apply only to
 * the next model call.
 */
export const hookPatchSchema = z.object({
  addedMessageIds: z.array(textSchema),
  /** Messages added between a message with tool calls and their results. */
  held: z.array(heldMessageSchema).optional(),
  calls: z.array(callPatchSchema).optional(),
  edited: z.array(z.object({ messageId: textSchema, content: contentSchema })),
  removedMessageIds: z.array(textSchema),
  stop: z.object({ reason: stopReasonSchema, message: textSchema }).nullable(),
  continueRequested: flagSchema,
  /** Settings of the next model call only. */
  settings: callSettingsSchema.optional(),
});
export type HookPatch = DeepReadonly<z.infer<typeof hookPatchSchema>>;

/** The nine hooks, in the order in which a turn runs them. */
export const hookNames = [
  "afterUserInput",
  "beforeLlm",
  "afterLlm",
  "beforeTools",
  "beforeEachTool",
  "afterEachTool",
  "onError",
  "afterTools",
  "onComplete",
] as const;
export const hookNameSchema = z.enum(hookNames);
/** Name of a hook, in the order in which a turn runs them. */
export type HookName = DeepReadonly<z.infer<typeof hookNameSchema>>;

/** The number of hooks of each name at the start of a turn. */
export const hookCountsSchema = z.object({
  afterUserInput: countSchema,
  beforeLlm: countSchema,
  afterLlm: countSchema,
  beforeTools: countSchema,
  beforeEachTool: countSchema,
  afterEachTool: countSchema,
  onError: countSchema,
  afterTools: countSchema,
  onComplete: countSchema,
});
export type HookCounts = DeepReadonly<z.infer<typeof hookCountsSchema>>;

export const noHooks: HookCounts = Object.freeze({
  afterUserInput: 0,
  beforeLlm: 0,
  afterLlm: 0,
  beforeTools: 0,
  beforeEachTool: 0,
  afterEachTool: 0,
  onError: 0,
  afterTools: 0,
  onComplete: 0,
});

/** A key that a caller chose for an input, and the hash of all parameters of the command. */
export const inputKeySchema = z.object({ text: textSchema, hash: textSchema });

/** Why an intent was refused. */
export const refusalReasonSchema = z.enum(["budget", "mustWait", "unpriced", "paused", "aborted"]);
export type RefusalReason = DeepReadonly<z.infer<typeof refusalReasonSchema>>;

/** A background child. Its end is kept for the next turn (`keep`) or starts one (`wake`). */
export const backgroundSchema = z.object({ onEnd: z.enum(["keep", "wake"]) });
export type Background = DeepReadonly<z.infer<typeof backgroundSchema>>;

/** A message that requires a model call and that none has seen: the report of a child's end, or an input that steers the turn. */
export const wakingReportSchema = z.object({
  /** `null` for an input. */
  childId: textOrNullSchema,
  messageId: textSchema,
  actorId: textOrNullSchema,
});
export type WakingReport = DeepReadonly<z.infer<typeof wakingReportSchema>>;

export const gateVerdictSchema = z.enum(["allowed", "denied", "invalid", "not_found", "failed"]);
export type GateVerdict = DeepReadonly<z.infer<typeof gateVerdictSchema>>;

export const turnOutcomeSchema = z.enum(["completed", "stopped", "failed"]);
export type TurnOutcome = DeepReadonly<z.infer<typeof turnOutcomeSchema>>;

/** The fields of every entry, set by the writer. */
export const envelope = {
  seq: positiveSchema,
  /** Milliseconds since the epoch, for people; it never decreases within a journal. */
  at: integerSchema,
  epoch: positiveSchema,
};
export const ofTurn = { ...envelope, turnId: textSchema };
export const ofStep = { ...ofTurn, step: positiveSchema };
export const ofCall = { ...ofStep, callId: textSchema };

/**
 * Whether a tool call with an unknown outcome may be repeated.
 * - `none`: it has no outside effect and may always be repeated.
 * - `keyed`: it is repeated with the same `idempotencyKey`; the receiver ensures that it takes effect once.
 * - `once`: it is never repeated; a call that was interrupted after its start has an unknown outcome.
 */
export const effectClassSchema = z.enum(["none", "keyed", "once"]);
/** Whether a call with an unknown outcome is repeated: `none` freely, `keyed` with the same key, `once` never. */
export type EffectClass = DeepReadonly<z.infer<typeof effectClassSchema>>;

/** W3C Trace Context: the span of the request. Stored and passed on unchanged. */
export const traceHeadersSchema = z.object({
  traceparent: z
    .string()
    .regex(/^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/, "is not of the form 00-<32 hex>-<16 hex>-<2 hex>"),
  tracestate: z
    .string()
    .regex(/^[\x20-\x7e]{0,512}$/, "takes at most 512 printable ASCII characters")
    .optional(),
}) satisfies z.ZodType<TraceHeaders>;

/** The holder of an account as seen by the agent that reached the limit. */
export const accountHolderSchema = z.object({
  /** Name of the holder's definition. */
  name: textSchema,
  kinship: z.enum(["own", "parent", "ancestor"]),
});
export type AccountHolder = DeepReadonly<z.infer<typeof accountHolderSchema>>;

/** Data about a limit besides its name and account; absent values are left out of the text. */
export const limitFiguresSchema = z.object({
  holder: accountHolderSchema.optional(),
  /** In the limit's unit: steps, tokens, micro-dollars, milliseconds, calls; for a deadline, the time at which it was reached. */
  used: z.number().optional(),
  max: z.number().optional(),
  /** When the account renews, if it is one above the root that does: milliseconds since the epoch. */
  renewsAt: integerSchema.optional(),
});
export type LimitFigures = DeepReadonly<z.infer<typeof limitFiguresSchema>>;

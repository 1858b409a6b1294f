import { z } from "zod";
import { countSchema, flagSchema, integerSchema, textSchema } from "../../base/index.ts";
import type { DeepReadonly } from "../../base/index.ts";

/*
 * State of the ReAct core. Plain JSON values, never mutated.
 *
 * Ordinals, not times, define the order and which message is newer. `ordinal` counts the inputs that changed the state; a message or
 * result has the count of its input. Times are stored unchanged, for people: two inputs in the same millisecond are distinct, and a clock
 * that jumps changes nothing.
 *
 * A model call has seen the state at its START. `calledLlmOrdinal` is therefore the `ordinal` of the state at the start of the last
 * observed call, not at its end: a user message that arrives during the call stays newer than it. The start is determined in one of two
 * ways:
 *  1. The caller read `state.ordinal` when it started the call and passes it in `re-act-observed`. This is exact.
 *  2. The caller passes no ordinal. Effects follow from the state, so the call is assumed to have started when the state first needed
 *     it: `callDueOrdinal`. If the caller started it later, messages in between count as unseen, which costs at most one extra call
 *     and never loses a message.
 */

const unsafeKeys: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/** A name or id that is used as a key. Keys that reach an object's prototype are refused. */
export const reactKeySchema = z
  .string()
  .min(1)
  .refine((key) => !unsafeKeys.has(key), { error: (issue) => `"${String(issue.input)}" may not be a name or an id` });

type SafeRecord<Value extends z.ZodType> = z.ZodRecord<z.ZodString, Value>;
type RecordInput<Value extends z.ZodType> = z.input<SafeRecord<Value>>;

/**
 * A record with safe keys. zod's own record silently skips `__proto__`, so the keys are checked first. Its type is explicit, because the
 * inferred one refers to helpers that older versions of zod 4 do not export.
 */
export function reactRecord<Value extends z.ZodType>(
  value: Value,
): z.ZodPipe<z.ZodCustom<RecordInput<Value>, RecordInput<Value>>, SafeRecord<Value>> {
  return z
    .custom<RecordInput<Value>>(hasSafeKeys, {
      error: 'expected an object without the keys "__proto__", "constructor" and "prototype"',
    })
    .pipe(z.record(reactKeySchema, value));
}

function hasSafeKeys(value: unknown): boolean {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.keys(value).every((key) => !unsafeKeys.has(key));
}

/** Milliseconds since the epoch. */
export const reactTimeSchema = integerSchema;
export const reactOrdinalSchema = countSchema;

export const reactMessageSchema = z.object({
  id: reactKeySchema,
  role: z.enum(["user", "assistant"]),
  /** Empty while it streams, and always empty if the caller stores contents elsewhere. */
  content: textSchema,
  /** When the message was received or, for an assistant's message, started. */
  timestamp: reactTimeSchema,
  ordinal: reactOrdinalSchema,
  /** True from `llm-message-started` to `llm-message-completed`. */
  isStreaming: flagSchema,
});
export type ReactMessage = DeepReadonly<z.infer<typeof reactMessageSchema>>;

export const reactToolDefinitionSchema = z.object({
  description: textSchema,
  /** JSON Schema of the parameters, serialized. */
  schema: textSchema,
});
export type ReactToolDefinition = DeepReadonly<z.infer<typeof reactToolDefinitionSchema>>;

const successShape = { isSuccess: z.literal(true), content: textSchema, receivedAt: reactTimeSchema };
const failureShape = { isSuccess: z.literal(false), error: textSchema, receivedAt: reactTimeSchema };

/** A result in an input. */
export const reactToolCallResultSchema = z.discriminatedUnion("isSuccess", [
  z.object(successShape),
  z.object(failureShape),
]);
export type ReactToolCallResult = DeepReadonly<z.infer<typeof reactToolCallResultSchema>>;

/** A result in the state. */
export const reactRecordedResultSchema = z.discriminatedUnion("isSuccess", [
  z.object({ ...successShape, ordinal: reactOrdinalSchema }),
  z.object({ ...failureShape, ordinal: reactOrdinalSchema }),
]);
export type ReactRecordedResult = DeepReadonly<z.infer<typeof reactRecordedResultSchema>>;

export const reactToolCallRequestSchema = z.object({
  name: reactKeySchema,
  /** The arguments, serialized. */
  parameters: textSchema,
  calledAt: reactTimeSchema,
});
export type ReactToolCallRequest = DeepReadonly<z.infer<typeof reactToolCallRequestSchema>>;

export const reactToolCallRecordSchema = reactToolCallRequestSchema.extend({
  /** `null` until the first result, which is never replaced. */
  result: reactRecordedResultSchema.nullable(),
});
export type ReactToolCallRecord = DeepReadonly<z.infer<typeof reactToolCallRecordSchema>>;

export const reactContextSchema = z.object({
  /** The number of latest messages that the model sees; at most the number of messages. */
  contextWindowSize: countSchema,
  /** External calls of the current loop, and older ones that were loaded into it again. */
  toolCallIds: z.array(reactKeySchema),
  /** Ordinal of the last `continue-re-act` without a new call: there is no result to wait for. */
  continuedOrdinal: reactOrdinalSchema.nullable(),
});
export type ReactContext = DeepReadonly<z.infer<typeof reactContextSchema>>;

export const reactStateSchema = z
  .object({
    /** In the order of arrival. */
    messages: z.array(reactMessageSchema),
    /** External tools by name. */
    tools: reactRecord(reactToolDefinitionSchema),
    /** Every external tool call by id, including earlier loops. Never contains internal tools. */
    toolCalls: reactRecord(reactToolCallRecordSchema),
    reActContext: reactContextSchema,
    /** Start of the last observed model call; 0 before the first. */
    calledLlmAt: reactTimeSchema,
    /** `ordinal` at that start; -1 before the first. */
    calledLlmOrdinal: z.number().int().min(-1),
    /** The ordinal since which the state needs a model call; `null` if it needs none. */
    callDueOrdinal: reactOrdinalSchema.nullable(),
    /** Number of inputs that changed the state. */
    ordinal: reactOrdinalSchema,
  })
  .superRefine((state, issues) => {
    if (state.reActContext.contextWindowSize > state.messages.length) {
      issues.addIssue({
        code: "custom",
        path: ["reActContext", "contextWindowSize"],
        message: `is larger than the number of messages, ${state.messages.length}`,
      });
    }
    state.reActContext.toolCallIds.forEach((id, index) => {
      if (Object.hasOwn(state.toolCalls, id)) return;
      issues.addIssue({
        code: "custom",
        path: ["reActContext", "toolCallIds", index],
        message: `no tool call "${id}"`,
      });
    });
  });
export type ReactState = DeepReadonly<z.infer<typeof reactStateSchema>>;

/** A call in the fold of a turn. */
export const foldedCallSchema = reactToolCallRecordSchema.extend({ id: reactKeySchema });
export type FoldedCall = DeepReadonly<z.infer<typeof foldedCallSchema>>;

/** The state in the fold of a turn: its calls are a list, because each result copies the collection of calls. */
export const foldedReactSchema = z.object({ ...reactStateSchema.shape, toolCalls: z.array(foldedCallSchema) });
export type FoldedReact = DeepReadonly<z.infer<typeof foldedReactSchema>>;

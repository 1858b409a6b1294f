import { z } from "zod";
import type { DeepReadonly } from "../../base/index.ts";
import {
  reactKeySchema,
  reactOrdinalSchema,
  reactRecord,
  reactTimeSchema,
  reactToolCallRequestSchema,
  reactToolCallResultSchema,
} from "./state.ts";

/** The time of each input, in milliseconds since the epoch. The order does not depend on it. */
const timed = { timestamp: reactTimeSchema };

export const reactUserMessageReceivedSchema = z.object({
  type: z.literal("user-message-received"),
  ...timed,
  messageId: reactKeySchema,
  content: z.string(),
});
export type ReactUserMessageReceived = DeepReadonly<z.infer<typeof reactUserMessageReceivedSchema>>;

/** The model started a visible message. A call with only tool calls has none. */
export const reactLlmMessageStartedSchema = z.object({
  type: z.literal("llm-message-started"),
  ...timed,
  messageId: reactKeySchema,
});
export type ReactLlmMessageStarted = DeepReadonly<z.infer<typeof reactLlmMessageStartedSchema>>;

export const reactLlmMessageCompletedSchema = z.object({
  type: z.literal("llm-message-completed"),
  ...timed,
  messageId: reactKeySchema,
  content: z.string(),
});
export type ReactLlmMessageCompleted = DeepReadonly<z.infer<typeof reactLlmMessageCompletedSchema>>;

export const reactObservationSchema = z.discriminatedUnion("type", [
  /** The loop continues. Without a new call there is no result to wait for, so the next model call is due at once. */
  z.object({ type: z.literal("continue-re-act"), toolCalls: reactRecord(reactToolCallRequestSchema) }),
  /** The loop is done: its tool calls are removed from the context and the window is reset to its initial size. */
  z.object({ type: z.literal("complete-re-act") }),
]);
export type ReactObservation = DeepReadonly<z.infer<typeof reactObservationSchema>>;

/** A model call ended. */
export const reactObservedSchema = z.object({
  type: z.literal("re-act-observed"),
  ...timed,
  /** When that call started, in milliseconds since the epoch. */
  calledLlmAt: reactTimeSchema,
  /** `state.ordinal` at the start of that call. If it is missing, see the beginning of state.ts. */
  calledLlmOrdinal: reactOrdinalSchema.optional(),
  observation: reactObservationSchema,
});
export type ReactObserved = DeepReadonly<z.infer<typeof reactObservedSchema>>;

export const reactToolCallCompletedSchema = z.object({
  type: z.literal("tool-call-completed"),
  ...timed,
  toolCallId: reactKeySchema,
  result: reactToolCallResultSchema,
});
export type ReactToolCallCompleted = DeepReadonly<z.infer<typeof reactToolCallCompletedSchema>>;

export const reactContextWindowExpandedSchema = z.object({ type: z.literal("context-window-expanded"), ...timed });
export type ReactContextWindowExpanded = DeepReadonly<z.infer<typeof reactContextWindowExpandedSchema>>;

export const reactHistoryToolCallsAddedSchema = z.object({
  type: z.literal("history-tool-calls-added"),
  ...timed,
  toolCallIds: z.array(reactKeySchema),
});
export type ReactHistoryToolCallsAdded = DeepReadonly<z.infer<typeof reactHistoryToolCallsAddedSchema>>;

/** All inputs of the ReAct core. Use it to parse input from outside. */
export const reactInputSchema = z.discriminatedUnion("type", [
  reactUserMessageReceivedSchema,
  reactLlmMessageStartedSchema,
  reactLlmMessageCompletedSchema,
  reactObservedSchema,
  reactToolCallCompletedSchema,
  reactContextWindowExpandedSchema,
  reactHistoryToolCallsAddedSchema,
]);
export type ReactInput = DeepReadonly<z.infer<typeof reactInputSchema>>;

import { z } from "zod";
import type { TraceHeaders, DeepReadonly } from "../base/index.ts";
import { jsonSchema } from "./json.ts";
import { usageSchema } from "./model-call.ts";

const common = {
  turnId: z.string(),
  /** The step it belongs to, from 1; 0 for what comes before the first model call. */
  step: z.number().int().nonnegative(),
  /** Milliseconds since the epoch at which it began, for people; order is the order in the trace. */
  at: z.number().int(),
};

/** What the user said at the start of a turn. */
export const userInputTraceSchema = z.object({
  type: z.literal("user_input"),
  ...common,
  /** Number of the turn within its agent, from 1. */
  turn: z.number().int().positive(),
  prompt: z.string(),
});

/** One model call that was answered. */
export const llmCallTraceSchema = z.object({
  type: z.literal("llm_call"),
  ...common,
  model: z.string(),
  durationMs: z.number().nonnegative(),
  /** How many tool calls the answer asked for. */
  toolCallsCount: z.number().int().nonnegative(),
  usage: usageSchema.extend({
    /** Millionths of a US dollar; null when the model's price is not known. */
    costMicros: z.number().int().nonnegative().nullable(),
  }),
});

/** One tool call that came to an end. `not_found`: the model named a tool that it does not have. */
export const toolExecutionTraceSchema = z.object({
  type: z.literal("tool_execution"),
  ...common,
  callId: z.string(),
  name: z.string(),
  /** The checked arguments, or the model's own text when it could not be read. */
  arguments: jsonSchema,
  status: z.enum(["success", "error", "not_found"]),
  /** What the model was told, when it worked. */
  result: z.string().optional(),
  /** What the model was told, when it did not. */
  error: z.string().optional(),
  /** Name or code of the error, for instance `TypeError` or `outcome_unknown`. */
  errorType: z.string().optional(),
  durationMs: z.number().nonnegative(),
});

/** One line of a turn's trace (row H5): always recorded, shown or not. */
export const traceEntrySchema = z.discriminatedUnion("type", [
  userInputTraceSchema,
  llmCallTraceSchema,
  toolExecutionTraceSchema,
]);
export type UserInputTrace = DeepReadonly<z.infer<typeof userInputTraceSchema>>;
export type LlmCallTrace = DeepReadonly<z.infer<typeof llmCallTraceSchema>>;
export type ToolExecutionTrace = DeepReadonly<z.infer<typeof toolExecutionTraceSchema>>;
export type TraceEntry = DeepReadonly<z.infer<typeof traceEntrySchema>>;

/** W3C Trace Context. Whoever gets it takes it as it is: it says under which span something was asked for. */
export const traceHeadersSchema = z.object({
  traceparent: z
    .string()
    .regex(/^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/, "is not of the form 00-<32 hex>-<16 hex>-<2 hex>"),
  tracestate: z
    .string()
    .regex(/^[\x20-\x7e]{0,512}$/, "takes at most 512 printable ASCII characters")
    .optional(),
}) satisfies z.ZodType<TraceHeaders>;

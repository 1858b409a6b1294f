import { z } from "zod";
import {
  countOrNullSchema,
  countSchema,
  integerSchema,
  optionalTextSchema,
  positiveSchema,
  textSchema,
} from "../base/index.ts";
import type { DeepReadonly } from "../base/index.ts";
import { numberOfTurn } from "./agent-ids.ts";
import type { Entry } from "./entry.ts";
import { gateToldBy } from "./call-state.ts";
import { type Json, jsonSchema } from "./json.ts";
import { textOf } from "./content-text.ts";
import type { Message } from "./message.ts";
import { usageSchema } from "./model-call.ts";

const common = {
  turnId: textSchema,
  /** The step of the entry, from 1; 0 for anything before the first model call. */
  step: countSchema,
  /** Its start, in milliseconds since the epoch, for people; the order is that of the trace. */
  at: integerSchema,
};

/** The user's message at the start of a turn, with step 0, or during the turn, with the step that sees it. */
export const userInputTraceSchema = z.object({
  type: z.literal("user_input"),
  ...common,
  /** Number of the turn within its agent, from 1. */
  turn: positiveSchema,
  prompt: textSchema,
});

/** One answered model call. */
export const llmCallTraceSchema = z.object({
  type: z.literal("llm_call"),
  ...common,
  model: textSchema,
  durationMs: z.number().nonnegative(),
  /** Number of tool calls in the answer. */
  toolCallsCount: countSchema,
  usage: usageSchema.extend({
    /** Millionths of a US dollar; `null` if the model's price is unknown. */
    costMicros: countOrNullSchema,
  }),
});

/** One finished tool call. `not_found`: the model called a tool that does not exist. */
export const toolExecutionTraceSchema = z.object({
  type: z.literal("tool_execution"),
  ...common,
  callId: textSchema,
  name: textSchema,
  /** The checked arguments, or the model's own text if it could not be parsed. */
  arguments: jsonSchema,
  status: z.enum(["success", "error", "not_found"]),
  /** The result as shown to the model, if the call succeeded. */
  result: optionalTextSchema,
  /** The error as shown to the model, if the call failed. */
  error: optionalTextSchema,
  /** The result as data, if the tool gave it as such. */
  structured: jsonSchema.optional(),
  /** Name or code of the error, for instance `TypeError` or `outcome_unknown`. */
  errorType: optionalTextSchema,
  durationMs: z.number().nonnegative(),
});

/** One entry of a turn's trace: always recorded, whether shown or not. */
export const traceEntrySchema = z.discriminatedUnion("type", [
  userInputTraceSchema,
  llmCallTraceSchema,
  toolExecutionTraceSchema,
]);
export type UserInputTrace = DeepReadonly<z.infer<typeof userInputTraceSchema>>;
export type LlmCallTrace = DeepReadonly<z.infer<typeof llmCallTraceSchema>>;
export type ToolExecutionTrace = DeepReadonly<z.infer<typeof toolExecutionTraceSchema>>;
/** One entry of a turn's trace. */
export type TraceEntry = DeepReadonly<z.infer<typeof traceEntrySchema>>;

/** The trace of one turn from its entries. `prompt` is the turn's input, `message` returns a stored message by id. */
export function traceEntriesOf(
  entries: readonly Entry[],
  prompt: string,
  message: (messageId: string) => Message | undefined,
): TraceEntry[] {
  const gated = new Map<string, Json>();
  const startedAt = new Map<string, number>();
  return entries.flatMap((entry): TraceEntry[] => {
    const gate = gateToldBy(entry);
    if (gate && "callId" in entry && entry.callId !== undefined) {
      gated.set(entry.callId, gate.arguments);
      startedAt.set(entry.callId, entry.at);
    }
    switch (entry.type) {
      case "turn.started":
        return [{ type: "user_input", turnId: entry.turnId, step: 0, at: entry.at, turn: entry.number, prompt }];
      case "turn.steered": {
        const { turnId, step, at, content } = entry;
        return [{ type: "user_input", turnId, step, at, turn: numberOfTurn(turnId), prompt: textOf(content) }];
      }
      case "model.responded": {
        const { turnId, step, model, durationMs, calls, usage, costMicros } = entry;
        return [
          {
            type: "llm_call",
            turnId,
            step,
            at: entry.at - durationMs,
            model,
            durationMs,
            toolCallsCount: calls.length,
            usage: { ...usage, costMicros },
          },
        ];
      }
      case "tool.settled": {
        const { turnId, step, callId, name, outcome, durationMs, error, structured } = entry;
        const text = textOf(message(entry.messageId)?.content ?? "");
        const status = outcome === "success" || outcome === "not_found" ? outcome : "error";
        return [
          {
            type: "tool_execution",
            turnId,
            step,
            at: startedAt.get(callId) ?? entry.at,
            callId,
            name,
            arguments: gated.get(callId) ?? null,
            status,
            ...(status === "success" ? { result: text } : { error: text }),
            ...(structured === undefined ? {} : { structured }),
            ...(error ? { errorType: error.code } : {}),
            durationMs,
          },
        ];
      }
      default:
        return [];
    }
  });
}

import { z } from "zod";
import {
  countSchema,
  optionalCountSchema,
  optionalFlagSchema,
  optionalPositiveSchema,
  optionalTextSchema,
  textSchema,
} from "../base/index.ts";
import type { DeepReadonly } from "../base/index.ts";
import { jsonObjectSchema } from "./json.ts";
import { answeringAdapterSchema, messageSchema } from "./message.ts";

/** Tokens of one model call. `inputTokens` includes the cached ones, `outputTokens` the reasoning ones. */
export const usageSchema = z.object({
  inputTokens: countSchema,
  outputTokens: countSchema,
  cachedInputTokens: optionalCountSchema,
  /**
   * Input that the provider wrote to its cache, which some providers charge separately; not part of the cached tokens.
   */
  cacheWriteTokens: optionalCountSchema,
  reasoningTokens: optionalCountSchema,
  /** True if the provider sent no usage, or an implausible one, and it was counted here. */
  estimated: optionalFlagSchema,
  /** The mistake in the usage that the provider sent. */
  note: optionalTextSchema,
});
/** Tokens of a model call. */
export type Usage = DeepReadonly<z.infer<typeof usageSchema>>;

export const finishReasonSchema = z.enum(["stop", "length", "tool_calls", "content_filter", "unknown"]);
export type FinishReason = DeepReadonly<z.infer<typeof finishReasonSchema>>;

/** A tool as the model sees it: `parameters` is a JSON Schema object. */
export const modelToolSchema = z.object({
  name: textSchema,
  description: textSchema,
  parameters: jsonObjectSchema,
});
export type ModelTool = DeepReadonly<z.infer<typeof modelToolSchema>>;

export const responseFormatSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text") }),
  z.object({ type: z.literal("json") }),
  z.object({ type: z.literal("json_schema"), name: textSchema, schema: jsonObjectSchema }),
]);
export type ResponseFormat = DeepReadonly<z.infer<typeof responseFormatSchema>>;

export const modelRequestSchema = z.object({
  messages: z.array(messageSchema),
  tools: z.array(modelToolSchema).optional(),
  toolChoice: z.enum(["auto", "none", "required"]).optional(),
  /** Upper bound of tokens to generate, reasoning included. */
  maxOutputTokens: optionalPositiveSchema,
  temperature: z.number().optional(),
  responseFormat: responseFormatSchema.optional(),
});
/** One call of a language model: the prompt, the tools, and how to answer. */
export type ModelRequest = DeepReadonly<z.infer<typeof modelRequestSchema>>;

/** A complete answer. Tools are wanted exactly if `toolCalls` is not empty; `finishReason` does not matter. */
export const modelResponseSchema = z.object({
  content: textSchema,
  toolCalls: z.array(z.object({ id: textSchema, name: textSchema, arguments: textSchema })),
  reasoning: jsonObjectSchema.optional(),
  usage: usageSchema,
  finishReason: finishReasonSchema,
  /** The model that answered, under the provider's name. */
  model: textSchema,
  /** The adapter that answered. A model that passes calls on to others hands it through. Default: the model that was asked. */
  adapter: answeringAdapterSchema.optional(),
});
/** The answer of a language model to one call. */
export type ModelResponse = DeepReadonly<z.infer<typeof modelResponseSchema>>;

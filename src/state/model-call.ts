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
import { answeringAdapterSchema, answerSourceSchema, messageSchema } from "./message.ts";

/** Tokens of one model call. `inputTokens` includes cached tokens, `outputTokens` includes reasoning. */
export const usageSchema = z.object({
  inputTokens: countSchema,
  outputTokens: countSchema,
  cachedInputTokens: optionalCountSchema,
  /** Input that the provider wrote to its cache, which some providers bill separately; not included in the cached tokens. */
  cacheWriteTokens: optionalCountSchema,
  /** Included in `cacheWriteTokens`: written for the longer lifetime that the provider offers, at a higher price. */
  longCacheWriteTokens: optionalCountSchema,
  reasoningTokens: optionalCountSchema,
  /** True if the provider sent no usage or an implausible one, so that it was counted locally. */
  estimated: optionalFlagSchema,
  /** The mistake in the usage that the provider reported. */
  note: optionalTextSchema,
});
/** Tokens of a model call. */
export type Usage = DeepReadonly<z.infer<typeof usageSchema>>;

export const finishReasonSchema = z.enum(["stop", "length", "tool_calls", "content_filter", "unknown"]);
export type FinishReason = DeepReadonly<z.infer<typeof finishReasonSchema>>;

/** A tool as shown to the model: `parameters` is a JSON Schema object. */
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

export const reasoningEfforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;
export const reasoningEffortSchema = z.enum(reasoningEfforts);
/** How much a model thinks before it answers. Providers differ in the values that they accept. */
export type ReasoningEffort = z.infer<typeof reasoningEffortSchema>;

export const toolChoices = ["auto", "none", "required"] as const;
export const toolChoiceSchema = z.union([z.enum(toolChoices), z.object({ tool: textSchema })]);
/** Whether tools may be called, must be called, or which one must be called. */
export type ToolChoice = DeepReadonly<z.infer<typeof toolChoiceSchema>>;

export const providerOptionsSchema = z.record(z.string(), jsonObjectSchema);
/** Options of a provider, by the provider's name. */
export type ProviderOptions = DeepReadonly<z.infer<typeof providerOptionsSchema>>;

/** The parts of a request that a definition, a turn or a `beforeLlm` hook can set. */
export const callSettingsSchema = z.object({
  temperature: z.number().optional(),
  /** Maximum number of tokens to generate, including reasoning. */
  maxOutputTokens: optionalPositiveSchema,
  /** Texts at which the answer ends; they are not part of it. */
  stopSequences: z.array(textSchema).optional(),
  reasoningEffort: reasoningEffortSchema.optional(),
  toolChoice: toolChoiceSchema.optional(),
  /** Fields of the provider, by its name. An adapter sends those of its own provider and ignores all others. */
  providerOptions: providerOptionsSchema.optional(),
});

export const modelRequestSchema = z.object({
  messages: z.array(messageSchema),
  tools: z.array(modelToolSchema).optional(),
  ...callSettingsSchema.shape,
  responseFormat: responseFormatSchema.optional(),
});
/** One call of a language model: the prompt, the tools, and the required form of the answer. */
export type ModelRequest = DeepReadonly<z.infer<typeof modelRequestSchema>>;

/** Something that an adapter could not send or that a provider reported about a call, for instance an option that was ignored. */
export const modelWarningSchema = z.object({ code: textSchema, message: textSchema });
export type ModelWarning = DeepReadonly<z.infer<typeof modelWarningSchema>>;

/** A complete answer. Tools are wanted exactly if `toolCalls` is not empty; `finishReason` does not matter. */
export const modelResponseSchema = z.object({
  content: textSchema,
  toolCalls: z.array(z.object({ id: textSchema, name: textSchema, arguments: textSchema })),
  reasoning: jsonObjectSchema.optional(),
  usage: usageSchema,
  finishReason: finishReasonSchema,
  /** The model that answered, under the provider's name. */
  model: textSchema,
  /** The adapter that answered. A model that delegates calls passes it on. Default: the called model. */
  adapter: answeringAdapterSchema.optional(),
  /** Each becomes a warning of the agent, once in a turn. */
  warnings: z.array(modelWarningSchema).optional(),
  /** What the answer is based on, as the provider reports it; stored with the message. */
  sources: z.array(answerSourceSchema).optional(),
  /**
   * Hash of the prefix of this answer, for providers that accept its reasoning only after the same prefix. Stored with the message, as
   * `reasoningBy.prefixHash`, for the adapter to compare.
   */
  prefixHash: optionalTextSchema,
});
/** The answer of a language model to one call. */
export type ModelResponse = DeepReadonly<z.infer<typeof modelResponseSchema>>;

import { z } from "zod";
import {
  type DeepReadonly,
  shortHash,
  stableStringify,
  flagSchema,
  integerSchema,
  optionalIntegerSchema,
  optionalTextSchema,
  textOrNullSchema,
  textSchema,
} from "../base/index.ts";
import { limitsSchema } from "../budget/index.ts";
import { effectClassSchema, toolKindSchema } from "./entry-parts.ts";
import { jsonObjectSchema } from "./json.ts";
import { providerOptionsSchema, reasoningEffortSchema, responseFormatSchema, toolChoiceSchema } from "./model-call.ts";

const storedToolSchema = z.object({
  name: textSchema,
  kind: toolKindSchema,
  description: textSchema,
  effect: effectClassSchema,
  jsonSchema: jsonObjectSchema,
  queue: optionalTextSchema,
  /** The model calls it through `call_tool`, and does not see it in its prompt. */
  deferred: z.literal(true).optional(),
  endsTurn: z.literal(true).optional(),
  /** What a subagent sees of its parent besides its input. */
  history: z.literal("conversation").optional(),
});

const storedModelSchema = z.object({
  provider: textSchema,
  name: textSchema,
  contextWindow: z.number().positive().optional(),
});

/** The content of a definition that its hash covers: everything except code. */
export const definitionContentSchema = z.object({
  name: textSchema,
  /** `models`: the models among which it chooses, if it is made of others. */
  model: storedModelSchema.extend({ models: z.array(storedModelSchema).optional() }),
  /** `null` if they come from a file or a function; the journal then has the text of each turn (`instructions.resolved`). */
  instructions: textOrNullSchema,
  tools: z.array(storedToolSchema),
  /** Tools that are shown to the model after the first result that was cut to an excerpt. */
  onDemandTools: z.array(storedToolSchema),
  /** Name of the history compiler. */
  history: textSchema,
  autoCompact: z.object({ strategy: textSchema, atPercent: z.number(), keep: optionalIntegerSchema }).nullable(),
  maxMessages: optionalIntegerSchema,
  temperature: z.number().optional(),
  maxOutputTokens: optionalIntegerSchema,
  stopSequences: z.array(textSchema).optional(),
  reasoningEffort: reasoningEffortSchema.optional(),
  toolChoice: toolChoiceSchema.optional(),
  providerOptions: providerOptionsSchema.optional(),
  responseFormat: responseFormatSchema.optional(),
  /** Schema of the final answer. */
  output: jsonObjectSchema.nullable(),
  /** Limits of each turn, without a deadline, because a deadline is a fixed time. */
  limits: limitsSchema,
  maxModelAttempts: integerSchema,
  maxConsecutiveToolFailures: integerSchema,
  plugins: z.array(textSchema),
  clientTools: flagSchema,
});
export type DefinitionContent = DeepReadonly<z.infer<typeof definitionContentSchema>>;

/** A definition as stored, once per tree, under its hash. */
export const storedDefinitionSchema = definitionContentSchema.extend({ hash: textSchema });
export type StoredDefinition = DeepReadonly<z.infer<typeof storedDefinitionSchema>>;

/** Equal contents have the same hash in every process. */
export function hashOfDefinition(content: object): string {
  return shortHash(stableStringify(content));
}

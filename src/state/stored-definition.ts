import { z } from "zod";
import { type DeepReadonly, shortHash, stableStringify } from "../base/index.ts";
import { limitsSchema } from "../budget/index.ts";
import { effectClassSchema, toolKindSchema } from "./entry-parts.ts";
import { jsonObjectSchema } from "./json.ts";
import { responseFormatSchema } from "./model-call.ts";

const storedToolSchema = z.object({
  name: z.string(),
  kind: toolKindSchema,
  description: z.string(),
  effect: effectClassSchema,
  jsonSchema: jsonObjectSchema,
  queue: z.string().optional(),
});

/** The part of a definition that its hash covers: all of it that is no code. */
export const definitionContentSchema = z.object({
  name: z.string(),
  model: z.object({ provider: z.string(), name: z.string(), contextWindow: z.number().positive().optional() }),
  /** Null: a file or a function; the journal has the text of each turn (`instructions.resolved`). */
  instructions: z.string().nullable(),
  tools: z.array(storedToolSchema),
  /** Tools that the model sees from the first result on that was cut to an excerpt. */
  onDemandTools: z.array(storedToolSchema),
  /** Name of the history compiler. */
  history: z.string(),
  autoCompact: z.object({ strategy: z.string(), atPercent: z.number(), keep: z.number().int().optional() }).nullable(),
  maxMessages: z.number().int().optional(),
  temperature: z.number().optional(),
  maxOutputTokens: z.number().int().optional(),
  responseFormat: responseFormatSchema.optional(),
  /** Schema of the final answer. */
  output: jsonObjectSchema.nullable(),
  /** Limits of each turn, without a deadline, which is a moment. */
  limits: limitsSchema,
  maxModelAttempts: z.number().int(),
  maxConsecutiveToolFailures: z.number().int(),
  plugins: z.array(z.string()),
  clientTools: z.boolean(),
});
export type DefinitionContent = DeepReadonly<z.infer<typeof definitionContentSchema>>;

/** A definition as the stores keep it, once a tree, under its hash. */
export const storedDefinitionSchema = definitionContentSchema.extend({ hash: z.string() });
export type StoredDefinition = DeepReadonly<z.infer<typeof storedDefinitionSchema>>;

/** Equal contents give the same hash in every process. */
export function hashOfDefinition(content: object): string {
  return shortHash(stableStringify(content));
}

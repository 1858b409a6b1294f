import { z } from "zod";
import { contentSchema, type Json, LONGEST_CONTENT, take, takeJson, takeText } from "../state/index.ts";
import type { ArtifactInput, AwaitOptions, GenerateInput } from "./run-context.ts";

/** Longest content of an artifact, in UTF-16 units: what is longer no store can be trusted with. 100 MB of a tool's result fit. */
export const LONGEST_ARTIFACT = 2 ** 27;
/** What one update of progress may have in all, in characters: it goes to everyone who watches. */
const LARGEST_UPDATE = 2 ** 20;
const LONGEST_NAME = 1_000;

const wholeText = z.string().refine((text) => text.isWellFormed(), { message: "holds half of a surrogate pair" });
const nameSchema = wholeText.min(1).max(LONGEST_NAME);
const artifactInputSchema = z.object({
  name: nameSchema,
  contentType: nameSchema,
  content: wholeText.max(LONGEST_ARTIFACT),
});
const generateInputSchema = z.object({
  messages: z.array(z.object({ role: z.enum(["system", "user", "assistant"]), content: contentSchema })).min(1),
  maxOutputTokens: z.number().int().positive().max(1_000_000_000).optional(),
  model: z.string().optional(),
});

const awaitOptionsSchema = z.object({ prefix: z.string().optional() }).optional();

// What user code hands to its run, brought to our own form; each throws `InvalidInputError` that says what is wrong where.

export function takeArtifact(given: unknown): ArtifactInput {
  const maxSize = LONGEST_ARTIFACT + 4 * LONGEST_NAME;
  return take(artifactInputSchema, given, "the artifact that run.saveArtifact() was given", { maxSize });
}

export function takeGenerateInput(given: unknown): GenerateInput {
  const maxSize = LONGEST_CONTENT;
  return take(generateInputSchema, given, "the request that run.generate() was given", { maxSize }) as GenerateInput;
}

export function takeUpdate(given: unknown): Json {
  return takeJson(given, "the update that run.progress() was given", { maxSize: LARGEST_UPDATE });
}

export function takeSpawnInput(given: unknown): string {
  return takeText(given, "the input that run.spawn() was given");
}

export function takeAwaitOptions(given: unknown): AwaitOptions | undefined {
  return given === undefined ? undefined : take(awaitOptionsSchema, given, "the options that run.await() was given");
}

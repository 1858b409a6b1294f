import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";
import { limitsSchema } from "../budget/index.ts";
import { callOutcomeSchema, storedErrorSchema } from "./execution.ts";
import { stopSignalSchema } from "./stop.ts";

/** A result that an agent or a tool made and that is too large for the conversation. */
export const artifactSchema = z.object({
  artifactId: z.string(),
  name: z.string(),
  /** Counts from 1 over the artifacts of one name. */
  version: z.number().int().positive(),
  contentType: z.string(),
  /** UTF-8 bytes. */
  size: z.number().int().nonnegative(),
  createdAt: z.number().int(),
  content: z.string(),
});
export type Artifact = DeepReadonly<z.infer<typeof artifactSchema>>;

/** A child that a queued tool has asked for: the owner of its agent spawns it. */
export const orderedSpawnSchema = z.object({
  /** Names the child within its call: the same key is the same child. */
  key: z.string(),
  childId: z.string(),
  /** Name of its definition. */
  definition: z.string(),
  input: z.string(),
  limits: limitsSchema,
});
export type OrderedSpawn = DeepReadonly<z.infer<typeof orderedSpawnSchema>>;

/** How one attempt of a queued call has ended, as whoever ran it tells the agent. */
export const callEndSchema = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("settled"),
    outcome: callOutcomeSchema,
    /** What the model is told. */
    text: z.string(),
    error: storedErrorSchema.nullable(),
    /** What it saved, and what was too large for the conversation. Their versions are given by the owner's commit. */
    artifacts: z.array(artifactSchema.omit({ version: true })).optional(),
    /** The one of them that holds the whole result. */
    artifactId: z.string().optional(),
    /** The tool has stopped the turn. */
    stop: stopSignalSchema.optional(),
  }),
  /** It has failed and may be tried again: the owner begins the next attempt. */
  z.object({ type: z.literal("retrying"), error: storedErrorSchema }),
  /** Its result is left to one of the children that it has asked for. */
  z.object({
    type: z.literal("ordered"),
    spawns: z.array(orderedSpawnSchema),
    /** The child whose answer is the result. */
    awaits: z.string(),
    /** What comes before that answer. */
    prefix: z.string().optional(),
    artifacts: z.array(artifactSchema.omit({ version: true })).optional(),
  }),
  /** The agent has taken it back: it is not begun any more, and what was begun is not waited for. */
  z.object({ type: z.literal("withdrawn") }),
]);
export type CallEnd = DeepReadonly<z.infer<typeof callEndSchema>>;

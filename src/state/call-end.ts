import { z } from "zod";
import {
  countSchema,
  integerSchema,
  optionalTextSchema,
  positiveSchema,
  textOrNullSchema,
  textSchema,
} from "../base/index.ts";
import type { DeepReadonly } from "../base/index.ts";
import { limitsSchema } from "../budget/index.ts";
import { callOutcomeSchema, storedErrorSchema } from "./execution.ts";
import { imagePartSchema } from "./message.ts";
import { stopSignalSchema } from "./stop.ts";

/** A result that an agent or a tool saved, or that was too large for the conversation. */
export const artifactSchema = z.object({
  artifactId: textSchema,
  name: textSchema,
  /** Counts from 1 over the artifacts of one name. */
  version: positiveSchema,
  contentType: textSchema,
  /** UTF-8 bytes. */
  size: countSchema,
  createdAt: integerSchema,
  /** The turn and the call that saved it; `null` if it was saved outside of a call. */
  turnId: textOrNullSchema,
  callId: textOrNullSchema,
  content: textSchema,
});
/** A version of something that a tool saved. */
export type Artifact = DeepReadonly<z.infer<typeof artifactSchema>>;

/** A child that a queued tool has ordered: the owner of its agent spawns it. */
export const orderedSpawnSchema = z.object({
  /** Names the child within its call: the same key is the same child. */
  key: textSchema,
  childId: textSchema,
  /** Name of its definition. */
  definition: textSchema,
  input: textSchema,
  limits: limitsSchema,
});
export type OrderedSpawn = DeepReadonly<z.infer<typeof orderedSpawnSchema>>;

/** The end of one attempt of a queued call, as its worker reports it to the agent. */
export const callEndSchema = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("settled"),
    outcome: callOutcomeSchema,
    /** The result as the model sees it. */
    text: textSchema,
    /** Images that the model gets with the text. */
    images: z.array(imagePartSchema).optional(),
    error: storedErrorSchema.nullable(),
    /**
     * Artifacts that it saved, and results that were too large for the conversation. The owner's commit numbers their
     * versions.
     */
    artifacts: z.array(artifactSchema.omit({ version: true })).optional(),
    /** The one of them that contains the whole result. */
    artifactId: optionalTextSchema,
    /** The tool has stopped the turn. */
    stop: stopSignalSchema.optional(),
  }),
  /** It has failed and may be repeated: the owner starts the next attempt. */
  z.object({ type: z.literal("retrying"), error: storedErrorSchema }),
  /** One of the ordered children gives the result. */
  z.object({
    type: z.literal("ordered"),
    spawns: z.array(orderedSpawnSchema),
    /** The child whose answer is the result. */
    awaits: textSchema,
    /** The text before that answer. */
    prefix: optionalTextSchema,
    artifacts: z.array(artifactSchema.omit({ version: true })).optional(),
  }),
  /** The agent has withdrawn the call: it will not start, and if it has started, the agent no longer waits for its result. */
  z.object({ type: z.literal("withdrawn") }),
]);
export type CallEnd = DeepReadonly<z.infer<typeof callEndSchema>>;

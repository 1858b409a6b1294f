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
import { jsonSchema } from "./json.ts";
import { filePartSchema, imagePartSchema } from "./message.ts";
import { stopSignalSchema } from "./stop.ts";

/** A result that an agent or a tool saved, or that was too large for the conversation. */
export const artifactSchema = z.object({
  artifactId: textSchema,
  name: textSchema,
  /** Counted from 1 per name. */
  version: positiveSchema,
  contentType: textSchema,
  /** Bytes: of the text in UTF-8, or of the decoded base64. */
  size: countSchema,
  createdAt: integerSchema,
  /** The turn and the call that saved it; `null` if it was saved outside of a call. */
  turnId: textOrNullSchema,
  callId: textOrNullSchema,
  /** Set if `content` is base64; otherwise it is text. */
  encoding: z.literal("base64").optional(),
  content: textSchema,
});
/** A version of a value that a tool saved. */
export type Artifact = DeepReadonly<z.infer<typeof artifactSchema>>;

/** A new artifact whose content is ready to be stored. */
export const fileArtifactSchema = artifactSchema.pick({
  artifactId: true,
  name: true,
  contentType: true,
  encoding: true,
  content: true,
});
export type FileArtifact = DeepReadonly<z.infer<typeof fileArtifactSchema>>;

/** A child that a queued tool has ordered; the owner of its agent spawns it. */
export const orderedSpawnSchema = z.object({
  /** Identifies the child within its call: the same key is the same child. */
  key: textSchema,
  childId: textSchema,
  /** Name of the child's definition. */
  definition: textSchema,
  input: textSchema,
  limits: limitsSchema,
  /** The child starts with the conversation of its parent. */
  history: z.literal("conversation").optional(),
});
export type OrderedSpawn = DeepReadonly<z.infer<typeof orderedSpawnSchema>>;

/** The end of one attempt of a queued call, as reported to the agent by its worker. */
export const callEndSchema = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("settled"),
    outcome: callOutcomeSchema,
    /** The result as shown to the model. */
    text: textSchema,
    /** Images that are sent to the model with the text. */
    images: z.array(imagePartSchema).optional(),
    /** Files that are sent to the model with the text, if its provider accepts them. */
    files: z.array(filePartSchema).optional(),
    /** The result as data, for programs. */
    structured: jsonSchema.optional(),
    error: storedErrorSchema.nullable(),
    /** Artifacts that it saved, and results that were too large for the conversation. The owner's commit assigns their versions. */
    artifacts: z.array(artifactSchema.omit({ version: true })).optional(),
    /** The artifact that contains the complete result. */
    artifactId: optionalTextSchema,
    /** The tool stopped the turn. */
    stop: stopSignalSchema.optional(),
  }),
  /** The attempt failed and may be repeated: the owner starts the next attempt. */
  z.object({ type: z.literal("retrying"), error: storedErrorSchema }),
  /** The result is the answer of one of the ordered children. */
  z.object({
    type: z.literal("ordered"),
    spawns: z.array(orderedSpawnSchema),
    /** The child whose answer is the result. */
    awaits: textSchema,
    /** The text that precedes that answer. */
    prefix: optionalTextSchema,
    artifacts: z.array(artifactSchema.omit({ version: true })).optional(),
  }),
  /** The agent has withdrawn the call: it will not start, or, if it has started, the agent no longer waits for its result. */
  z.object({ type: z.literal("withdrawn") }),
]);
export type CallEnd = DeepReadonly<z.infer<typeof callEndSchema>>;

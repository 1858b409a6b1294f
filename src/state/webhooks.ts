import { z } from "zod";
import { textOrNullSchema, textSchema } from "../base/index.ts";
import { jsonObjectSchema, jsonSchema } from "./json.ts";

/** A receiver outside that is told what happens in one turn, and what it has been told. */
export const webhookSchema = z.object({
  /** The surface that the receiver was named on, which knows what to tell it. */
  surface: textSchema,
  turnId: textSchema,
  /** Unique among those of its turn and surface. */
  name: textSchema,
  ownerId: textSchema,
  url: textSchema,
  /** What only the receiver may see, encrypted; null: nothing. */
  sealed: textOrNullSchema,
  /** What else the surface keeps of it. Nothing in it is secret. */
  details: jsonObjectSchema,
  createdAt: z.number(),
  /** The row of the tree up to which it has been told. */
  cursor: z.int(),
  /** What the surface remembers of what it was told; null: it has been told nothing yet. */
  told: jsonSchema.nullable(),
  /** How often in succession it could not be reached. */
  failures: z.int(),
  /** When to try it again; null: as soon as there is something to tell. */
  retryAt: z.number().nullable(),
});
export type Webhook = z.output<typeof webhookSchema>;

/** The webhooks of a tree. They are kept until their turns have ended and all has been told. */
export const treeWebhooksSchema = z.object({
  tenant: textSchema,
  rootAgentId: textSchema,
  /** Another one after each change. */
  revision: textSchema,
  /** When somebody has to look whether there is anything to tell, in milliseconds since the epoch. */
  dueAt: z.number(),
  /** Who tells the receivers, and until when nobody else may; null: nobody. */
  claim: z.object({ by: textSchema, until: z.number() }).nullable(),
  webhooks: z.array(webhookSchema),
});
export type TreeWebhooks = z.output<typeof treeWebhooksSchema>;

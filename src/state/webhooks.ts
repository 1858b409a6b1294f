import { z } from "zod";
import { jsonObjectSchema, jsonSchema } from "./json.ts";

/** A receiver outside that is told what happens in one turn, and what it has been told. */
export const webhookSchema = z.object({
  /** The surface that the receiver was named on, which knows what to tell it. */
  surface: z.string(),
  turnId: z.string(),
  /** Unique among those of its turn and surface. */
  name: z.string(),
  ownerId: z.string(),
  url: z.string(),
  /** What only the receiver may see, encrypted; null: nothing. */
  sealed: z.string().nullable(),
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
  tenant: z.string(),
  rootAgentId: z.string(),
  /** Another one after each change. */
  revision: z.string(),
  /** When somebody has to look whether there is anything to tell, in milliseconds since the epoch. */
  dueAt: z.number(),
  /** Who tells the receivers, and until when nobody else may; null: nobody. */
  claim: z.object({ by: z.string(), until: z.number() }).nullable(),
  webhooks: z.array(webhookSchema),
});
export type TreeWebhooks = z.output<typeof treeWebhooksSchema>;

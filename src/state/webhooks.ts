import { z } from "zod";
import { textOrNullSchema, textSchema } from "../base/index.ts";
import { jsonObjectSchema, jsonSchema } from "./json.ts";

/** A receiver outside that gets messages about one turn, and what has been sent to it. */
export const webhookSchema = z.object({
  /** The surface that the receiver was named on, which knows what to tell it. */
  surface: textSchema,
  turnId: textSchema,
  /** Unique among those of its turn and surface. */
  name: textSchema,
  ownerId: textSchema,
  url: textSchema,
  /** Data that only the receiver may see, encrypted; `null` if there is none. */
  sealed: textOrNullSchema,
  /** What else the surface keeps of it. Nothing in it is secret. */
  details: jsonObjectSchema,
  createdAt: z.number(),
  /** The row of the tree up to which messages have been sent. */
  cursor: z.int(),
  /** What the surface remembers of the messages sent to the receiver; `null` before the first message. */
  told: jsonSchema.nullable(),
  /** How often in succession it could not be reached. */
  failures: z.int(),
  /** When to try again; `null` to try as soon as there is a message to send. */
  retryAt: z.number().nullable(),
});
export type Webhook = z.output<typeof webhookSchema>;

/** The webhooks of a tree. They are kept until their turns have ended and all messages have been sent. */
export const treeWebhooksSchema = z.object({
  tenant: textSchema,
  rootAgentId: textSchema,
  /** Another one after each change. */
  revision: textSchema,
  /** When a process has to look for messages to send, in milliseconds since the epoch. */
  dueAt: z.number(),
  /** The process that sends to the receivers, and until when it alone may do so; `null` if no process has claimed them. */
  claim: z.object({ by: textSchema, until: z.number() }).nullable(),
  webhooks: z.array(webhookSchema),
});
export type TreeWebhooks = z.output<typeof treeWebhooksSchema>;

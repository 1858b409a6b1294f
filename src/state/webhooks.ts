import { z } from "zod";
import { textOrNullSchema, textSchema } from "../base/index.ts";
import { jsonObjectSchema, jsonSchema } from "./json.ts";

/** An outside receiver of messages about one turn, and the state of the messages sent to it. */
export const webhookSchema = z.object({
  /** The surface on which the receiver was registered; it builds the messages. */
  surface: textSchema,
  turnId: textSchema,
  /** Unique per turn and surface. */
  name: textSchema,
  ownerId: textSchema,
  url: textSchema,
  /** Encrypted data for the receiver only; `null` if there is none. */
  sealed: textOrNullSchema,
  /** Other data of the surface; contains no secrets. */
  details: jsonObjectSchema,
  createdAt: z.number(),
  /** The row of the tree up to which messages were sent. */
  cursor: z.int(),
  /** Data of the surface about the messages sent to the receiver; `null` before the first message. */
  told: jsonSchema.nullable(),
  /** Number of consecutive failures to reach it. */
  failures: z.int(),
  /** When to try again; `null` to try as soon as there is a message to send. */
  retryAt: z.number().nullable(),
});
export type Webhook = z.output<typeof webhookSchema>;

/** The webhooks of a tree. They are kept until their turns have ended and all messages have been sent. */
export const treeWebhooksSchema = z.object({
  tenant: textSchema,
  rootAgentId: textSchema,
  /** Changes with each write. */
  revision: textSchema,
  /** When a process has to check for messages to send, in milliseconds since the epoch. */
  dueAt: z.number(),
  /** The process that sends to the receivers, and the time until which only it may do so; `null` if no process has claimed them. */
  claim: z.object({ by: textSchema, until: z.number() }).nullable(),
  webhooks: z.array(webhookSchema),
});
export type TreeWebhooks = z.output<typeof treeWebhooksSchema>;

import { z } from "zod";
import type { ChatOptions } from "../chat/chat-options.ts";

/** A message that a person typed, under the idempotency key with which it is given to the agent. */
const typedMessageSchema = z.object({ key: z.string(), text: z.string() });
export type TypedMessage = z.infer<typeof typedMessageSchema>;

const treeSchema = z.object({ tenant: z.string(), rootAgentId: z.string() });
export type Tree = z.infer<typeof treeSchema>;

/** An error of a call, to be thrown again in the other process. */
const thrownSchema = z.object({
  code: z.string(),
  message: z.string(),
  issues: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
});
export type Thrown = z.infer<typeof thrownSchema>;

/**
 * What the process of a conversation tells `troupe dev`. The person's own code runs there and can write to the same channel, so every
 * message is parsed.
 */
export const sessionMessageSchema = z.discriminatedUnion("type", [
  /** A file of the agent was read, in this state. */
  z.object({ type: z.literal("file"), path: z.string(), fingerprint: z.string() }),
  /** The definitions are loaded and the runtime works. */
  z.object({
    type: z.literal("ready"),
    definitions: z.array(z.string()),
    models: z.array(z.string()),
  }),
  /** The conversation could not be started or continued. `isFile`: because of the agent file. */
  z.object({ type: z.literal("failed"), text: z.string(), exitCode: z.number(), isFile: z.boolean() }),
  /** The person has left. */
  z.object({ type: z.literal("left"), exitCode: z.number() }),
  /** The half-typed line, and lines of a pipe that were not read. */
  z.object({ type: z.literal("draft"), text: z.string(), unread: z.array(z.string()) }),
  /** All work is stored, but for `left` agents whose call was cut off. */
  z.object({ type: z.literal("drained"), left: z.number() }),
  /** A line was taken from the person. */
  z.object({ type: z.literal("taken") }),
  /** A message is being given to the agent. */
  z.object({ type: z.literal("sending"), message: typedMessageSchema }),
  /** The message is stored, or was refused. */
  z.object({ type: z.literal("sent"), key: z.string() }),
  /** Asks for the next line of a pipe. */
  z.object({ type: z.literal("next") }),
  /** A part of an answer while it is written. */
  z.object({ type: z.literal("live"), tree: treeSchema, message: z.string() }),
  z.object({ type: z.literal("answer"), id: z.number(), value: z.unknown(), thrown: thrownSchema.optional() }),
]);
export type SessionMessage = z.infer<typeof sessionMessageSchema>;

/** How a conversation starts in a new process. */
export interface SessionStart {
  readonly file: string;
  readonly options: ChatOptions;
  /** The first process of this conversation introduces it; later ones continue on the same terminal. */
  readonly isFirst: boolean;
  /** Number of watched files that the session does not report itself. */
  readonly otherFiles: number;
  /** The half-typed line of the last process. */
  readonly draft: string;
  /** Messages that the last process may not have stored. */
  readonly unsent: readonly TypedMessage[];
  /** Trees whose answers are followed. */
  readonly followed: readonly Tree[];
}

/** What `troupe dev` tells the process of a conversation. */
export type DevMessage =
  | { readonly type: "start"; readonly start: SessionStart }
  | { readonly type: "line"; readonly line: string | null }
  /** End at a safe point within this time. */
  | { readonly type: "drain"; readonly timeoutMs: number; readonly reason: string }
  | { readonly type: "follow" | "unfollow" | "ask"; readonly tree: Tree }
  | { readonly type: "call"; readonly id: number; readonly method: string; readonly args: readonly unknown[] };

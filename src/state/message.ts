import { z } from "zod";
import { integerSchema, optionalFlagSchema, optionalTextSchema, textSchema } from "../base/index.ts";
import type { DeepReadonly } from "../base/index.ts";
import { jsonObjectSchema } from "./json.ts";

export const textPartSchema = z.object({ type: z.literal("text"), text: textSchema });
/** An image by `https:` or `data:` URL. */
export const imagePartSchema = z.object({ type: z.literal("image"), url: textSchema });
/** A file: a `url` (`https:` or `data:`), or the `artifactId` of an artifact of the agent. In a prompt it may have both. */
export const filePartSchema = z.object({
  type: z.literal("file"),
  /** For instance `application/pdf`. */
  mediaType: textSchema,
  url: optionalTextSchema,
  artifactId: optionalTextSchema,
  name: optionalTextSchema,
});
export type FilePart = DeepReadonly<z.infer<typeof filePartSchema>>;
export const contentPartSchema = z.discriminatedUnion("type", [textPartSchema, imagePartSchema, filePartSchema]);
/** A part of a message: a text, an image or a file. */
export type ContentPart = DeepReadonly<z.infer<typeof contentPartSchema>>;

export const contentSchema = z.union([textSchema, z.array(contentPartSchema)]);
/** The content of a message: a text, or parts. */
export type Content = DeepReadonly<z.infer<typeof contentSchema>>;

/** One tool call of the model. `arguments` is the model's own text and may be invalid JSON. */
export const toolCallRequestSchema = z.object({
  /** Our id: `turn:step:index`. */
  callId: textSchema,
  /** The provider's id, used only in requests to providers. */
  providerId: textSchema,
  name: textSchema,
  arguments: textSchema,
  /** The tool that a call through `call_tool` means: its name for the journal, events and approvals. Prompts keep what the model wrote. */
  tool: optionalTextSchema,
  /** In a fork: the id in the first tree. Prompts are formed with it, so that they equal those of the origin. */
  sentCallId: optionalTextSchema,
});
export type ToolCallRequest = DeepReadonly<z.infer<typeof toolCallRequestSchema>>;

/**
 * The adapter that answered, to which the agent's model may have delegated the call: only this adapter gets the reasoning and call ids
 * back unchanged.
 */
export const answeringAdapterSchema = z.object({
  provider: textSchema,
  model: textSchema,
  /** The address of its server, without credentials. */
  server: optionalTextSchema,
});
export type AnsweringAdapter = DeepReadonly<z.infer<typeof answeringAdapterSchema>>;

/** What an answer is based on, as its provider reports it: a page, or a document of the prompt. */
export const answerSourceSchema = z.object({
  type: z.enum(["url", "document"]),
  id: optionalTextSchema,
  url: optionalTextSchema,
  title: optionalTextSchema,
  mediaType: optionalTextSchema,
});
export type AnswerSource = DeepReadonly<z.infer<typeof answerSourceSchema>>;

/** Metadata of a message that a step added. The names come from the source document. */
export const messageMetadataSchema = z.object({
  step_id: optionalTextSchema,
  execution_id: optionalTextSchema,
  agent_id: optionalTextSchema,
  is_trace: optionalFlagSchema,
});
export type MessageMetadata = DeepReadonly<z.infer<typeof messageMetadataSchema>>;

/** Metadata of a message that a step of a turn adds; `isTrace`: the message is not part of the dialogue of user and agent. */
export function stepMetadata(
  agentId: string,
  place: { turnId: string; step: number; isTrace: boolean },
): MessageMetadata {
  const { turnId, step, isTrace } = place;
  return {
    step_id: `${turnId}:${step}`,
    execution_id: turnId,
    agent_id: agentId,
    ...(isTrace ? { is_trace: true } : {}),
  };
}

const common = {
  id: textSchema,
  /** Milliseconds since the epoch, for people; the order is defined by the store. */
  createdAt: integerSchema,
  content: contentSchema,
  /** The source: `user`, `model`, `tool`, `hook:<plugin>`, `runtime`. */
  origin: textSchema,
  metadata: messageMetadataSchema.optional(),
};

export const userMessageSchema = z.object({
  role: z.literal("user"),
  ...common,
  /** Id of an earlier message of a user whose content this one replaces in every prompt; absent for other messages. */
  replaces: optionalTextSchema,
});
export const systemMessageSchema = z.object({ role: z.literal("system"), ...common });
export const assistantMessageSchema = z.object({
  role: z.literal("assistant"),
  ...common,
  toolCalls: z.array(toolCallRequestSchema).optional(),
  /** Provider fields that must be sent back unchanged (reasoning text, signatures), only to `reasoningBy`. */
  reasoning: jsonObjectSchema.optional(),
  /** The agent's model that produced `reasoning` and the calls; `adapter` is the one that produced them for it. */
  reasoningBy: z
    .object({
      provider: textSchema,
      model: textSchema,
      adapter: answeringAdapterSchema.optional(),
      /** The `prefixHash` of the answer, for providers that accept `reasoning` only after the same prefix. */
      prefixHash: optionalTextSchema,
    })
    .optional(),
  /** What the answer is based on; never sent to a model. */
  sources: z.array(answerSourceSchema).optional(),
});
export const toolMessageSchema = z.object({
  role: z.literal("tool"),
  ...common,
  callId: textSchema,
  providerId: textSchema,
  /** The `sentCallId` of the call. */
  sentCallId: optionalTextSchema,
  isError: optionalFlagSchema,
  /** The artifact with the complete content, if `content` is an excerpt. */
  artifactId: optionalTextSchema,
});
export const messageSchema = z.discriminatedUnion("role", [
  userMessageSchema,
  systemMessageSchema,
  assistantMessageSchema,
  toolMessageSchema,
]);
export type UserMessage = DeepReadonly<z.infer<typeof userMessageSchema>>;
export type SystemMessage = DeepReadonly<z.infer<typeof systemMessageSchema>>;
export type AssistantMessage = DeepReadonly<z.infer<typeof assistantMessageSchema>>;
export type ToolMessage = DeepReadonly<z.infer<typeof toolMessageSchema>>;
/** A message of a conversation, of any role. */
export type Message = DeepReadonly<z.infer<typeof messageSchema>>;

/** Returns the same copy each time, because tokens and digests of messages are cached by object. */
const bareMessages = new WeakMap<AssistantMessage, AssistantMessage>();

/** The message without its reasoning. */
export function withoutReasoning(message: AssistantMessage): AssistantMessage {
  let copy = bareMessages.get(message);
  if (copy === undefined) {
    const { reasoning: _fields, ...rest } = message;
    copy = rest;
    bareMessages.set(message, copy);
  }
  return copy;
}

/** Cached values of a message or a tool, which do not change any more. */
export interface MessageNotes {
  digest: string | undefined;
  /** Digest of everything that is sent to providers, apart from reasoning. */
  sentDigest: string | undefined;
  reasoningDigest: string | undefined;
  /** An upper bound of its tokens, from its bytes. */
  bound: number | undefined;
  /** The counted number of its tokens. */
  tokens: number | undefined;
  /** The arguments of its calls as sent to providers. */
  sentArguments: readonly string[] | undefined;
}

const notes = new WeakMap<object, MessageNotes>();

/** The cached values of a message or a tool. One object per owner, because an entry of a weak map costs more than it saves. */
export function notesOn(owner: object): MessageNotes {
  let known = notes.get(owner);
  if (known === undefined) {
    known = {
      digest: undefined,
      sentDigest: undefined,
      reasoningDigest: undefined,
      bound: undefined,
      tokens: undefined,
      sentArguments: undefined,
    };
    notes.set(owner, known);
  }
  return known;
}

/** A prompt is found as a continuation if it has at most this many more messages than the previous one. */
const MOST_NEW = 64;

/** The beginning of a prompt, and its cached value. */
export interface KnownBeginning<Value> {
  readonly messages: readonly Message[];
  readonly value: Value;
}

/**
 * Cached values of prompts. Conversations grow at their end, so most prompts extend the previous one, and only their new messages have to
 * be processed. The newest prompt of each conversation is cached while its last message exists.
 */
export class KnownBeginnings<Value> {
  readonly #known = new WeakMap<Message, KnownBeginning<Value>>();
  readonly #fewest: number;

  /** Shorter prompts are not cached: looking them up costs more than computing the value again. */
  constructor(fewest: number) {
    this.#fewest = fewest;
  }

  /** The longest cached beginning of the prompt, possibly all of it. */
  find(prompt: readonly Message[]): KnownBeginning<Value> | undefined {
    if (prompt.length < this.#fewest) return undefined;
    const shortest = Math.max(1, prompt.length - MOST_NEW);
    for (let length = prompt.length; length >= shortest; length -= 1) {
      const last = prompt[length - 1];
      const known = last && this.#known.get(last);
      if (known && known.messages.length === length && beginsWith(prompt, known.messages)) return known;
    }
    return undefined;
  }

  forget({ messages }: KnownBeginning<Value>): void {
    const last = messages.at(-1);
    if (last) this.#known.delete(last);
  }

  /** Caches the value of a prompt, replacing the beginning that it extends. */
  keep(prompt: readonly Message[], value: Value, beginning?: KnownBeginning<Value>): void {
    if (beginning) this.forget(beginning);
    const last = prompt.at(-1);
    // A copy, because the array belongs to the caller.
    if (last && prompt.length >= this.#fewest) this.#known.set(last, { messages: prompt.slice(), value });
  }
}

function beginsWith(prompt: readonly Message[], beginning: readonly Message[]): boolean {
  for (let index = 0; index < beginning.length; index += 1) if (prompt[index] !== beginning[index]) return false;
  return true;
}

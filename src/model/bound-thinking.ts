import { shortHash } from "../base/index.ts";
import {
  type AssistantMessage,
  KnownBeginnings,
  type Message,
  type ModelRequest,
  type ModelResponse,
  type ModelTool,
  notesOn,
  withoutReasoning,
} from "../state/index.ts";
import { isBlank } from "./prompt-form.ts";
import { isOwnModel, isOwnServer } from "./wire-calls.ts";

/*
 * Newer models of Anthropic bind their thinking to its prefix: the system prompt, the tools and all earlier messages. A request that
 * returns thinking after a changed prefix is refused. Windows, compactions and hooks change prefixes, so each answer is stored with a
 * hash of its prefix as it was sent, and its thinking is returned only while the prefix of that message has the same hash.
 * 1. The hash rolls over the messages as they are sent, with the thinking that is sent. If the thinking of one message is left out, the
 *    prefix of all later ones differs, and their thinking is left out too, unless it was generated without that one.
 * 2. The hash covers the message's own text and calls, because models think between them.
 * 3. Thinking without a hash is left out: it is not known from which prefix it was generated.
 */

/** When thinking is sent back: only after an unchanged prefix, or in any case. */
export const thinkingReplays = ["bound", "always"] as const;
export type ThinkingReplay = (typeof thinkingReplays)[number];

/** The first version number after `claude`, in any provider's form: `claude-opus-5-5`, `anthropic/claude-opus-5.5`, `claude-3-5-haiku-20241022`. */
const claudeVersion = /claude\D*(\d{1,2})(?!\d)(?:[.-](\d{1,2})(?!\d))?/i;

/**
 * The replay that was set, or the model's. Models of Anthropic bind their thinking from version 5.1 on. Older ones must not lose it: they
 * refuse calls of tools without the thinking that led to them.
 */
export function thinkingReplayOf(model: string, given: "auto" | ThinkingReplay = "auto"): ThinkingReplay {
  if (given !== "auto") return given;
  if (!/claude/i.test(model)) return "always";
  const [, major, minor = "0"] = claudeVersion.exec(model) ?? [];
  if (major === undefined) return "bound";
  return Number(major) > 5 || (Number(major) === 5 && Number(minor) > 0) ? "bound" : "always";
}

/** The reader of a prompt: the model that is called, and its server. */
export interface ThinkingReader {
  /** `provider` of the model. */
  readonly provider: string;
  /** `name` of the model. */
  readonly model: string;
  /** The address of the server. Default: unknown. */
  readonly server?: string | undefined;
}

/** A request whose thinking fits its prefix. */
export interface BoundPrompt {
  /** The request without thinking whose prefix has changed. */
  readonly request: ModelRequest;
  /** The `prefixHash` of the answer to this request. */
  readonly hashOf: (answer: Pick<ModelResponse, "content" | "toolCalls">) => string;
}

/** Part of every hash; raise it if prompts are formed in another way. */
const FORM = "1";

/** The beginning of a prompt as it is sent. */
interface SentBeginning {
  /** Hash of tools and format, and the reader. */
  readonly form: string;
  /** Hash of everything so far. */
  readonly prefix: string;
  /** Whether anything but instructions is sent. */
  readonly isBegun: boolean;
  readonly isChanged: boolean;
  readonly messages: readonly Message[];
}

/** Shorter prompts are hashed each time. */
const FEWEST_KEPT = 16;
const beginnings = new KnownBeginnings<SentBeginning>(FEWEST_KEPT);

/** For models that bind thinking to its prefix: leaves out thinking whose prefix is not the one that it was generated from. */
export function bindThinking(request: ModelRequest, reader: ThinkingReader): BoundPrompt {
  const { prefix, isBegun, isChanged, messages } = sentPrompt(request, reader);
  // A prompt of instructions alone is sent with a question that later prompts do not contain.
  const end = isBegun ? prefix : shortHash(`${prefix}question`);
  return {
    request: isChanged ? { ...request, messages: [...messages] } : request,
    hashOf: ({ content, toolCalls }) =>
      sealOf(
        end,
        answerDigest(
          content,
          toolCalls.map(({ id, ...call }) => ({ ...call, providerId: id })),
        ),
      ),
  };
}

function sentPrompt(request: ModelRequest, reader: ThinkingReader): SentBeginning {
  const { provider, model, server } = reader;
  const head = headHash(request);
  const form = JSON.stringify([head, provider, model, server]);
  const found = beginnings.find(request.messages);
  const known = found?.value.form === form ? found : undefined;
  let { prefix, isBegun, isChanged } = known?.value ?? { prefix: head, isBegun: false, isChanged: false };
  const messages = [...(known?.value.messages ?? [])];
  for (const message of request.messages.slice(messages.length)) {
    const sent = fitting(message, prefix, reader);
    isChanged ||= sent !== message;
    isBegun ||= message.role !== "system" && !isBlank(message.content);
    messages.push(sent);
    prefix = shortHash(prefix + messageDigest(sent, reader));
  }
  const all = { form, prefix, isBegun, isChanged, messages };
  beginnings.keep(request.messages, all, known);
  return all;
}

/** Hash of what comes before the messages. Some adapters send only the tool that has to be called. */
function headHash({ tools = [], toolChoice, responseFormat }: ModelRequest): string {
  const forced = typeof toolChoice === "object" ? toolChoice.tool : null;
  return shortHash(JSON.stringify([FORM, tools.map(toolDigest), forced, responseFormat ?? null]));
}

function fitting(message: Message, prefix: string, reader: ThinkingReader): Message {
  if (message.role !== "assistant" || message.reasoning === undefined) return message;
  const { reasoningBy } = message;
  const fits = isOwnModel(message, reader) && reasoningBy?.prefixHash === sealOf(prefix, baseDigest(message));
  return fits ? message : withoutReasoning(message);
}

function sealOf(prefix: string, answer: string): string {
  return shortHash(prefix + answer);
}

function messageDigest(message: Message, reader: ThinkingReader): string {
  const digest = message.role + baseDigest(message);
  if (message.role !== "assistant") return digest;
  const { toolCalls = [] } = message;
  // Ids that another server wrote are derived from those of the runtime.
  const ids = isOwnServer(message, reader) ? "" : toolCalls.map(({ callId, sentCallId = callId }) => sentCallId).join();
  return `${digest} ${reasoningDigest(message)} ${ids}`;
}

/** Digest of what is sent of a message, apart from reasoning. Cached, since messages do not change. */
function baseDigest(message: Message): string {
  const notes = notesOn(message);
  notes.sentDigest ??= computedDigest(message);
  return notes.sentDigest;
}

function computedDigest(message: Message): string {
  if (message.role === "assistant") return answerDigest(message.content, message.toolCalls ?? []);
  const content = plainContent(message.content);
  if (message.role !== "tool") return shortHash(JSON.stringify(content));
  const { callId, sentCallId = callId, providerId, isError = false } = message;
  return shortHash(JSON.stringify([content, sentCallId, providerId, isError]));
}

/** The fields of parts in one order, since a store may return them in another one. The id of an artifact stands for its content. */
function plainContent(content: Message["content"]): unknown {
  if (typeof content === "string") return content;
  return content.map((part) => {
    const fields = Object.entries(part).filter(([name]) => name !== "url" || !("artifactId" in part));
    return fields.toSorted(([one], [other]) => (one < other ? -1 : 1));
  });
}

type SentCall = Pick<NonNullable<AssistantMessage["toolCalls"]>[number], "providerId" | "name" | "arguments">;

function answerDigest(content: Message["content"], calls: readonly SentCall[]): string {
  const sent = calls.map(({ providerId, name, arguments: given }) => [providerId, name, given]);
  return shortHash(JSON.stringify([plainContent(content), sent]));
}

function reasoningDigest(message: AssistantMessage): string {
  if (message.reasoning === undefined) return "";
  const notes = notesOn(message);
  notes.reasoningDigest ??= shortHash(JSON.stringify(message.reasoning));
  return notes.reasoningDigest;
}

function toolDigest(tool: ModelTool): string {
  const notes = notesOn(tool);
  notes.sentDigest ??= shortHash(JSON.stringify([tool.name, tool.description, tool.parameters]));
  return notes.sentDigest;
}

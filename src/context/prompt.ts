import { ShortHash, shortHash } from "../base/index.ts";
import {
  type AssistantMessage,
  type Content,
  type Entry,
  type HookPatch,
  KnownBeginnings,
  type Message,
  type ModelRequest,
  notesOn,
  type ToolCallRequest,
  turnIdOf,
  withoutReasoning,
} from "../state/index.ts";
import { type Assembly, assembleMessages } from "./histories.ts";
import { isOfTurn, openTurnStart } from "./turns-and-rounds.ts";

/** The model that is called, as named in the messages that it wrote. */
export interface Writer {
  readonly provider: string;
  readonly name: string;
}

/** The conversation at the time of one model call. All fields except a compiler's code are in the journal. */
export interface PromptSource extends Assembly {
  readonly agentId: string;
  /** The number of the open turn. */
  readonly number: number;
  readonly model: Writer;
}

/** The messages of one model call. Used for live calls and for rebuilding stored ones. */
export function promptMessages({ agentId, number, model, ...assembly }: PromptSource): readonly Message[] {
  const { input } = assembly;
  const history = withoutClosing(assembly, agentId, number);
  const messages = assembleMessages(
    history === input.history ? assembly : { ...assembly, input: { ...input, history } },
  );
  return withOwnReasoning(messages, model);
}

/**
 * A turn without input continues the one before. If that was stopped, the runtime's message about the stop is left out of the
 * prompts.
 */
function withoutClosing({ input }: Assembly, agentId: string, number: number): readonly Message[] {
  const { history, turnId, turnStart } = input;
  const before = turnIdOf(agentId, number - 1);
  const closingId = `${before}:end`;
  // That message directly precedes the open turn's messages, so a long history need not be searched.
  let index = (turnStart ?? openTurnStart(history, turnId)) - 1;
  for (let at = history[index]; at && at.id !== closingId && isOfTurn(at, before); at = history[index]) index -= 1;
  if (history[index]?.id !== closingId) return history;
  const isContinued = !history.some(({ id }, place) => place > index && id === `${turnId}:in`);
  return isContinued ? history.toSpliced(index, 1) : history;
}

/** The changes by `beforeLlm` hooks for the next call, from the turn's entries so far. */
export function patchesIn(turnEntries: readonly Entry[]): HookPatch[] {
  const patches: HookPatch[] = [];
  for (const entry of turnEntries) {
    if (entry.type === "model.responded") patches.length = 0;
    if (entry.type === "hook.applied" && entry.hook === "beforeLlm") patches.push(entry.patch);
  }
  return patches;
}

/** The content of an artifact never changes, so its id stands for it. */
function hashedContent(content: Content): Content {
  if (typeof content === "string") return content;
  return content.map((part) => {
    if (part.type !== "file" || part.artifactId === undefined || part.url === undefined) return part;
    const { url: _content, ...rest } = part;
    return rest;
  });
}

/** Digest of role, content and calls. */
export function digestOf(message: Message): string {
  const notes = notesOn(message);
  if (notes.digest === undefined) {
    const toolCalls = message.role === "assistant" ? (message.toolCalls?.map(asFirstSent) ?? null) : null;
    notes.digest = shortHash(JSON.stringify([message.role, hashedContent(message.content), toolCalls]));
  }
  return notes.digest;
}

/** The call with the id that its prompt is formed with, so that a prompt of a fork has the hash of the same prompt of its origin. */
function asFirstSent({ sentCallId, ...call }: ToolCallRequest): ToolCallRequest {
  return sentCallId === undefined ? call : { ...call, callId: sentCallId };
}

/** For shorter prompts continuing a hash costs more than computing it again. */
const SHORTEST_KEPT = 32;
const hashes = new KnownBeginnings<ShortHash>(SHORTEST_KEPT);

/** The same prompt has the same hash; message ids and times are excluded. Each message is digested and hashed once. */
export function promptHashOf(messages: readonly Message[]): string {
  if (messages.length < SHORTEST_KEPT) return shortHash(messages.map(digestOf).join(""));
  const known = hashes.find(messages);
  const start = known?.messages.length ?? 0;
  if (known && start === messages.length) return known.value.text;
  const hash = (known?.value ?? new ShortHash()).with(messages.slice(start).map(digestOf).join(""));
  hashes.keep(messages, hash, known);
  return hash.text;
}

/**
 * The messages for a model. Reasoning is sent only to the model that wrote it: it may be signed or encrypted, and a provider
 * refuses reasoning signed by another one, so that every further call would fail.
 */
function withOwnReasoning(messages: readonly Message[], model: Writer): readonly Message[] {
  if (!messages.some((message) => isForeign(message, model))) return messages;
  return messages.map((message) => (isForeign(message, model) ? withoutReasoning(message) : message));
}

function isForeign(message: Message, { provider, name }: Writer): message is AssistantMessage {
  if (message.role !== "assistant" || message.reasoning === undefined) return false;
  const { reasoningBy: writer } = message;
  return writer?.provider !== provider || writer.model !== name;
}

/** The last message of the prompt of a turn's last permitted call. No other prompt contains it. */
export const LAST_CALL_NOTE =
  "This is the last model call that the budget of this turn allows, and tools are no longer available. Answer now, with what you have; say plainly what is missing.";

/** The id of that message. */
export const LAST_CALL_ID = "last-call";

const note: Message = Object.freeze({
  id: LAST_CALL_ID,
  role: "user",
  createdAt: 0,
  content: LAST_CALL_NOTE,
  origin: "runtime",
});

/**
 * The request for the last permitted call: tool calls are disabled and a note explains it. The tools stay in the request, since
 * providers cache prompts by their beginning, and tools come first.
 */
export function asLastCall(request: ModelRequest): ModelRequest {
  const toolChoice = request.tools === undefined ? {} : ({ toolChoice: "none" } as const);
  return { ...request, ...toolChoice, messages: [...request.messages, note] };
}

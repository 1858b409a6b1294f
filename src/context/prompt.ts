import { ShortHash, shortHash } from "../base/index.ts";
import {
  type AssistantMessage,
  type Entry,
  type HookPatch,
  KnownBeginnings,
  type Message,
  type ModelRequest,
  notesOn,
  turnIdOf,
} from "../state/index.ts";
import { type Assembly, assembleMessages } from "./histories.ts";
import { isOfTurn, openTurnStart } from "./turns-and-rounds.ts";

/** The model that is asked, as it is named in messages that it wrote. */
export interface Writer {
  readonly provider: string;
  readonly name: string;
}

/** The conversation as one model call finds it. Everything is in the journal but the code of a compiler. */
export interface PromptSource extends Assembly {
  readonly agentId: string;
  /** The number of the open turn. */
  readonly number: number;
  readonly model: Writer;
}

/** The messages of one model call. Live calls are made by it, and stored ones are rebuilt. */
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
  // That message is one of the last before the open turn's, so a long history is not searched.
  let index = (turnStart ?? openTurnStart(history, turnId)) - 1;
  for (let at = history[index]; at && at.id !== closingId && isOfTurn(at, before); at = history[index]) index -= 1;
  if (history[index]?.id !== closingId) return history;
  const isContinued = !history.some(({ id }, place) => place > index && id === `${turnId}:in`);
  return isContinued ? history.toSpliced(index, 1) : history;
}

/** The changes of `beforeLlm` hooks for the coming call, from the turn's entries so far. */
export function patchesIn(turnEntries: readonly Entry[]): HookPatch[] {
  const patches: HookPatch[] = [];
  for (const entry of turnEntries) {
    if (entry.type === "model.responded") patches.length = 0;
    if (entry.type === "hook.applied" && entry.hook === "beforeLlm") patches.push(entry.patch);
  }
  return patches;
}

function digestOf(message: Message): string {
  const notes = notesOn(message);
  if (notes.digest === undefined) {
    const toolCalls = message.role === "assistant" ? (message.toolCalls ?? null) : null;
    notes.digest = shortHash(JSON.stringify([message.role, message.content, toolCalls]));
  }
  return notes.digest;
}

/** Of shorter prompts it costs more to go on with a hash than to make it anew. */
const SHORTEST_KEPT = 32;
const hashes = new KnownBeginnings<ShortHash>(SHORTEST_KEPT);

/** The same prompt gives the same hash; message ids and times do not count. Each message is digested and hashed once. */
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
 * The messages for a model: reasoning goes back only to the model that wrote it. It may be signed or encrypted, and a provider
 * refuses reasoning that another one has signed, so that every further call would fail.
 */
function withOwnReasoning(messages: readonly Message[], model: Writer): readonly Message[] {
  if (!messages.some((message) => isForeign(message, model))) return messages;
  return messages.map((message) => (isForeign(message, model) ? bare(message) : message));
}

function isForeign(message: Message, { provider, name }: Writer): message is AssistantMessage {
  if (message.role !== "assistant" || message.reasoning === undefined) return false;
  const { reasoningBy: writer } = message;
  return writer?.provider !== provider || writer.model !== name;
}

/** The same copy each time: tokens and digests of messages are cached by object. */
const bareMessages = new WeakMap<Message, AssistantMessage>();

function bare(message: AssistantMessage): AssistantMessage {
  let copy = bareMessages.get(message);
  if (copy === undefined) {
    const { reasoning: _fields, ...rest } = message;
    copy = rest;
    bareMessages.set(message, copy);
  }
  return copy;
}

/** The end of the prompt of a turn's last permitted call. It is in no other prompt. */
export const LAST_CALL_NOTE =
  "This is the last model call that the budget of this turn allows, and tools are no longer available. Answer now, with what you have; say plainly what is missing.";

const note: Message = Object.freeze({
  id: "last-call",
  role: "user",
  createdAt: 0,
  content: LAST_CALL_NOTE,
  origin: "runtime",
});

/**
 * The request for a call after which none is allowed: no tool may be called, and a note says so. The tools stay in it, since
 * providers cache prompts by their beginning, and tools come first.
 */
export function asLastCall(request: ModelRequest): ModelRequest {
  const toolChoice = request.tools === undefined ? {} : ({ toolChoice: "none" } as const);
  return { ...request, ...toolChoice, messages: [...request.messages, note] };
}

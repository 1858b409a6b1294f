import { deepFreeze, shortHash } from "../base/index.ts";
import type { ReservationAsk } from "../budget/index.ts";
import { assembleMessages, type CompileInput, isOfTurn, openTurnStart } from "../context/index.ts";
import type { LanguageModel } from "../model/index.ts";
import {
  type AssistantMessage,
  type EntryOf,
  type HookPatch,
  type LastCall,
  type Message,
  type ModelRequest,
  signalOfLimit,
  type StopSignal,
  turnIdOf,
  type TurnState,
  type Usage,
} from "../state/index.ts";
import type { Host } from "./host.ts";
import { grantedTool, toolsOf } from "./tool-calls.ts";

/** The request of the coming model call, from history, instructions and what hooks edited for this call alone. */
export function assembleRequest(host: Host, turn: TurnState): ModelRequest {
  const { definition, identity } = host;
  const assembled = assembleMessages({
    instructions: instructionsOf(host, turn.turnId),
    compiler: definition.history,
    input: { ...compileInputOf(host, turn), ...withoutClosing(host, turn) },
    patches: patchesOf(host, turn),
  });
  const messages = withOwnReasoning(assembled, definition.model);
  // From the first excerpt on the tool stays: a change of tools would cost the provider's cache of the whole prompt.
  const all = toolsOf(host, turn.turnId).definitions({ onDemand: host.hasExcerpts() });
  const isNarrowed = identity.grantedTools !== null || identity.deniedTools !== undefined;
  const tools = isNarrowed ? all.filter(({ name }) => grantedTool(host, turn.turnId, name) !== undefined) : all;
  return {
    messages,
    ...(tools.length > 0 ? { tools } : {}),
    ...(definition.temperature === undefined ? {} : { temperature: definition.temperature }),
    ...(definition.responseFormat === undefined ? {} : { responseFormat: definition.responseFormat }),
  };
}

/**
 * A turn without input continues the one before. If that was stopped, the runtime's message about the stop is left out of the
 * prompts.
 */
function withoutClosing(host: Host, { turnId, number }: TurnState): { readonly history: readonly Message[] } {
  const history = host.history();
  const before = turnIdOf(host.identity.agentId, number - 1);
  const closingId = `${before}:end`;
  // That message is one of the last before the open turn's, so a long history is not searched.
  let index = (host.turnStart() ?? openTurnStart(history, turnId)) - 1;
  for (let at = history[index]; at && at.id !== closingId && isOfTurn(at, before); at = history[index]) index -= 1;
  if (history[index]?.id !== closingId) return { history };
  const isContinued = !history.some(({ id }, place) => place > index && id === `${turnId}:in`);
  return { history: isContinued ? history.toSpliced(index, 1) : history };
}

/** The input of the history compiler. */
export function compileInputOf(host: Host, { turnId, contextWindowSize, loadedCallIds }: TurnState): CompileInput {
  return {
    history: host.history(),
    turnId,
    turnStart: host.turnStart(),
    contextWindowSize,
    loadedCallIds: deepFreeze(loadedCallIds),
    earlier: host.archive(),
  };
}

/**
 * The request for a model adapter, with a list of its own, since an adapter may be user code that adds to the list. The messages
 * are frozen.
 */
export function lent(request: ModelRequest): ModelRequest {
  return { ...request, messages: [...request.messages] };
}

const digests = new WeakMap<Message, string>();

/** The same prompt gives the same hash; message ids and times do not count. Each message is digested once. */
export function promptHashOf(messages: readonly Message[]): string {
  let all = "";
  for (const message of messages) {
    let digest = digests.get(message);
    if (digest === undefined) {
      const toolCalls = message.role === "assistant" ? (message.toolCalls ?? null) : null;
      digest = shortHash(JSON.stringify([message.role, message.content, toolCalls]));
      digests.set(message, digest);
    }
    all += digest;
  }
  return shortHash(all);
}

function instructionsOf(host: Host, turnId: string): string {
  const { instructions } = host.definition;
  if (typeof instructions === "string") return instructions;
  const resolved = host.memory(turnId).entries.find(isResolved);
  return resolved?.text ?? "";
}

function isResolved(entry: { type: string }): entry is EntryOf<"instructions.resolved"> {
  return entry.type === "instructions.resolved";
}

/** The changes of `beforeLlm` hooks for the coming call. */
export function patchesOf(host: Host, turn: TurnState): HookPatch[] {
  if (turn.appliedHooks.length === 0) return [];
  const patches: HookPatch[] = [];
  for (const entry of host.memory(turn.turnId).entries) {
    if (entry.type === "model.responded") patches.length = 0;
    if (entry.type === "hook.applied" && entry.hook === "beforeLlm") patches.push(entry.patch);
  }
  return patches;
}

type Writer = Pick<LanguageModel, "provider" | "name">;

export function writerOf({ provider, name }: Writer): NonNullable<AssistantMessage["reasoningBy"]> {
  return { provider, model: name };
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
    const { reasoning: _fields, reasoningBy: _writer, ...rest } = message;
    copy = rest;
    bareMessages.set(message, copy);
  }
  return copy;
}

/** The end of the prompt of a turn's last permitted call. It is in no other prompt. */
const LAST_CALL_NOTE =
  "This is the last model call that the budget of this turn allows, and tools are no longer available. Answer now, with what you have; say plainly what is missing.";

const note: Message = Object.freeze({
  id: "last-call",
  role: "user",
  createdAt: 0,
  content: LAST_CALL_NOTE,
  origin: "runtime",
});

/** Tokens of the note and its message frame: a generous estimate, and an upper bound for any tokenizer. */
const NOTE_TOKENS = 48;
const NOTE_BOUND = Buffer.byteLength(LAST_CALL_NOTE) + 16;

/** Whether the turn's budget asks for a final answer. */
export function finalAnswerOf({ limits }: TurnState): Pick<ReservationAsk, "finalAnswer"> {
  return limits.finalAnswer === true ? { finalAnswer: true } : {};
}

/** The ask with room for the note: whether a call is the last one is known only when it is granted. */
export function withNote(ask: ReservationAsk): ReservationAsk {
  if (ask.finalAnswer !== true) return ask;
  return { ...ask, promptTokens: ask.promptTokens + NOTE_TOKENS, promptBound: ask.promptBound + NOTE_BOUND };
}

/**
 * The request for a call after which none is allowed: no tool may be called, and a note says so. The tools stay in it, since
 * providers cache prompts by their beginning, and tools come first.
 */
export function asLastCall(request: ModelRequest): ModelRequest {
  const toolChoice = request.tools === undefined ? {} : ({ toolChoice: "none" } as const);
  return { ...request, ...toolChoice, messages: [...request.messages, note] };
}

/** The stop of a turn whose last permitted answer calls tools all the same: it names the limit that left no further call. */
export function lastCallSignal(last: LastCall, usage: Usage, costMicros: number | null): StopSignal {
  const { limit, accountId, max, holder } = last;
  const tokens = limit === "maxTokens" ? usage.inputTokens + usage.outputTokens : 0;
  const cost = limit === "maxCostMicros" ? (costMicros ?? 0) : 0;
  return signalOfLimit(limit, accountId, { used: last.used + tokens + cost, max, holder });
}

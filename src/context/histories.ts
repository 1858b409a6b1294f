import { describeValue, optionsOf, wholeNumberRule } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { Content, HookPatch, Message, AssistantMessage } from "../state/index.ts";
import {
  legalMessages,
  isLegal,
  isOfTurn,
  isSummary,
  openTurnStart,
  type Round,
  roundsOf,
} from "./turns-and-rounds.ts";

/** The input of a history compiler. */
export interface CompileInput {
  /** Oldest first, since the last compaction or clear. Changes of hooks for one call are applied afterwards. */
  readonly history: readonly Message[];
  /** The open turn: all its messages so far are always shown. */
  readonly turnId: string;
  /**
   * Index in `history` of the open turn's first message, where the runtime knows it; then only the first message can be a summary
   * before it. If it is `undefined`, the compiler searches for it, which takes time in a long history.
   */
  readonly turnStart?: number | undefined;
  /** The window as the turn has it now; `null` for the compiler's own. */
  readonly contextWindowSize: number | null;
  /** Earlier calls whose results the model asked to see again, in that order. */
  readonly loadedCallIds: readonly string[];
  /** The messages before the last compaction, or the whole conversation: results are loaded from there too. */
  readonly earlier: readonly Message[];
}

/** Chooses which messages of the conversation one model call sees. Pure: the same input gives the same messages. */
export interface HistoryCompiler {
  /** With its numbers, so that another name means another choice. */
  readonly name: string;
  /** Messages of the conversation that a turn sees at first; `undefined` if there is no window that the model could widen. */
  readonly contextWindowSize?: number;
  /** By how many messages the model widens the window at a time. */
  readonly expandBy?: number;
  /** Whether the model is given tools on its own context. */
  readonly internalTools: boolean;
  /** Legal as `legalMessages` makes it, in the order of the history. */
  compile(input: CompileInput): readonly Message[];
}

const ownCompilers = new WeakSet<HistoryCompiler>();

function own(compiler: HistoryCompiler): HistoryCompiler {
  ownCompilers.add(Object.freeze(compiler));
  return compiler;
}

/** Whether the compiler is one of this package's: only those may be lent internal lists. */
export function isOwnCompiler(compiler: HistoryCompiler): boolean {
  return ownCompilers.has(compiler);
}

export interface Assembly {
  /** The system prompt; "": none. */
  readonly instructions: string;
  readonly compiler: HistoryCompiler;
  readonly input: CompileInput;
  /** Of the `beforeLlm` hooks of this call, in their order. */
  readonly patches: readonly HookPatch[];
}

/**
 * The messages of one model call: the compiler's choice, with the changes of hooks for this call, and the instructions
 * in front. Each tool call has exactly one result right behind it, for any input.
 */
export function assembleMessages({ instructions, compiler, input, patches }: Assembly): Message[] {
  // What the compilers of this package give is legal.
  const isOurs = isOwnCompiler(compiler);
  const chosen = isOurs ? compiler.compile(input) : compiledBy(compiler, input);
  const legal = isOurs && patches.length === 0 ? chosen : legalMessages(withPatches(chosen, patches));
  return instructions === "" ? [...legal] : [systemMessageOf(instructions), ...legal];
}

/** How many messages a compiler may add. */
const MOST_ADDED = 1_000;
const roles: ReadonlySet<unknown> = new Set<Message["role"]>(["user", "system", "assistant", "tool"]);

/** The compiler's choice. Throws `InvalidInputError` unless it is a list of messages. */
function compiledBy(compiler: HistoryCompiler, input: CompileInput): readonly Message[] {
  const most = input.history.length + input.earlier.length + MOST_ADDED;
  const chosen: unknown = compiler.compile(input);
  if (!Array.isArray(chosen) || chosen.length > most) {
    const found = Array.isArray(chosen) ? `a list of ${chosen.length}` : describeValue(chosen);
    throw new InvalidInputError(
      `the history compiler "${compiler.name}" gave ${found}; it must give a list of messages, ${most} at most`,
    );
  }
  const wrong = (chosen as readonly unknown[]).findIndex((message) => !isMessage(message));
  if (wrong < 0) return chosen as readonly Message[];
  throw new InvalidInputError(
    `the history compiler "${compiler.name}" gave ${describeValue(chosen[wrong])} at [${wrong}]; it must give messages of the conversation`,
  );
}

/** Checks few fields: most messages are the conversation's own, and all of them are checked at each call. */
function isMessage(message: unknown): boolean {
  if (typeof message !== "object" || message === null) return false;
  const { role, content, id } = message as Partial<Message>;
  return roles.has(role) && typeof id === "string" && (typeof content === "string" || Array.isArray(content));
}

const systemMessages = new Map<string, Message>();
const systemMessagesKept = 64;

/** Instructions seldom change: the same text gives the same message, since tokens and digests are cached by message. */
function systemMessageOf(instructions: string): Message {
  let message = systemMessages.get(instructions);
  if (message === undefined) {
    const [oldest] = systemMessages.keys();
    if (oldest !== undefined && systemMessages.size >= systemMessagesKept) systemMessages.delete(oldest);
    message = { id: "instructions", role: "system", createdAt: 0, content: instructions, origin: "runtime" };
    Object.freeze(message);
    systemMessages.set(instructions, message);
  }
  return message;
}

/** Messages with the changes of `beforeLlm` hooks. */
export function withPatches(history: readonly Message[], patches: readonly HookPatch[]): readonly Message[] {
  if (patches.length === 0) return history;
  const edited = new Map<string, Content>();
  const removed = new Set<string>();
  for (const patch of patches) {
    for (const { messageId, content } of patch.edited) edited.set(messageId, content);
    for (const messageId of patch.removedMessageIds) removed.add(messageId);
  }
  return history.flatMap((message) => {
    if (removed.has(message.id)) return [];
    const content = edited.get(message.id);
    return content === undefined ? [message] : [Object.freeze({ ...message, content })];
  });
}

export interface ReactHistoryOptions {
  /** Messages of the conversation that a turn sees at first. Default 10. */
  readonly contextWindowSize?: number | undefined;
  /** By how many the model widens the window at a time. Default 10. */
  readonly expandBy?: number | undefined;
}

/**
 * The newest messages of user and assistant, without the tool rounds of earlier turns; the open
 * turn in full; and in front of it the calls that the model loaded again. The window counts messages of user and assistant, with
 * the open turn's input but without its rounds, so it does not move while the turn works. A summary is always shown and never
 * counted. The model widens its own window by internal tools.
 */
export function reactHistory(options?: ReactHistoryOptions): HistoryCompiler {
  const { contextWindowSize = 10, expandBy = 10 } = optionsOf<ReactHistoryOptions>(options, "reactHistory()", {
    rules: { contextWindowSize: wholeNumberRule(1), expandBy: wholeNumberRule(1) },
    instead: { size: "contextWindowSize", windowSize: "contextWindowSize" },
  });
  return own({
    name: `reactHistory(${contextWindowSize}, ${expandBy})`,
    contextWindowSize,
    expandBy,
    internalTools: true,
    compile: (input: CompileInput) => reactContext(input, input.contextWindowSize ?? contextWindowSize),
  });
}

function reactContext(input: CompileInput, size: number): readonly Message[] {
  const { earlier, loadedCallIds } = input;
  const { said, open, counted } = conversationOf({ ...input, history: newestPart(input, size) });
  const loaded = loadedCallIds.length === 0 ? [] : loadedRounds(loadedCallIds, [...earlier, ...input.history], open);
  return legalMessages([...newestOf(said, size - counted), ...loaded, ...open]);
}

/**
 * At least the open turn and one message more than `size` of those that the window counts before it, so that it is cut as the whole
 * history would be; the whole history where that is not known. A summary stays in front.
 */
function newestPart({ history, turnStart }: CompileInput, size: number): readonly Message[] {
  let from = turnStart ?? 0;
  for (let left = size + 1; from > 1 && left > 0; ) {
    from -= 1;
    const message = history[from];
    if (message && isCounted(message) && spoken(message)) left -= 1;
  }
  const [first] = history;
  const tail = history.slice(from);
  if (from <= 1 || !first || isLegal(tail) !== undefined) return history;
  return isSummary(first) ? [first, ...tail] : tail;
}

interface ConversationParts {
  /** The conversation before the open turn. */
  readonly said: readonly Message[];
  /** The open turn, rounds included. */
  readonly open: readonly Message[];
  /** How many messages of the open turn the window counts. */
  readonly counted: number;
}

function conversationOf({ history, turnId }: CompileInput): ConversationParts {
  const legal = legalMessages(history);
  const start = openTurnStart(legal, turnId);
  const open = legal.slice(start);
  const counted = open.filter((message) => isCounted(message) && message.metadata?.is_trace !== true).length;
  return { said: legal.slice(0, start).flatMap((message) => spoken(message) ?? []), open, counted };
}

/** The newest `size` messages that count, with those between them; summaries always. */
function newestOf(said: readonly Message[], size: number): readonly Message[] {
  let from = said.length;
  let left = size;
  for (let index = said.length - 1; index >= 0 && left > 0; index -= 1) {
    const message = said[index];
    if (!message || !isCounted(message)) continue;
    from = index;
    left -= 1;
  }
  const hidden = said.slice(0, from);
  return hidden.some(isCounted) ? [...hidden.filter(isSummary), ...said.slice(from)] : said;
}

function isCounted(message: Message): boolean {
  return (message.role === "user" || message.role === "assistant") && !isSummary(message);
}

const textOnly = new WeakMap<AssistantMessage, AssistantMessage>();

/** A message as part of the conversation: text beside tool calls stays, the calls and results do not. */
function spoken(message: Message): Message | undefined {
  if (message.role === "tool") return undefined;
  if (message.role !== "assistant" || !message.toolCalls || message.toolCalls.length === 0) return message;
  if (isEmpty(message.content)) return undefined;
  let said = textOnly.get(message);
  if (!said) {
    // Reasoning belongs to the calls: providers sign it for them.
    const { toolCalls: _calls, reasoning: _reasoning, ...rest } = message;
    said = Object.freeze(rest);
    textOnly.set(message, said);
  }
  return said;
}

function isEmpty(content: Content): boolean {
  if (typeof content === "string") return content.trim() === "";
  return content.every((part) => part.type === "text" && part.text.trim() === "");
}

/** The window of a compiler after the model asked for more. */
export interface ExpandedWindow {
  /** Its new size; the old one when there is no more to show. */
  readonly size: number;
  /** How many messages could be shown in all. */
  readonly total: number;
}

/**
 * The next window of a turn: wider by the compiler's `expandBy`, never past the number of messages. For a
 * compiler without a window undefined.
 */
export function expandedWindow(compiler: HistoryCompiler, input: CompileInput): ExpandedWindow | undefined {
  if (compiler.contextWindowSize === undefined) return undefined;
  const size = input.contextWindowSize ?? compiler.contextWindowSize;
  const { said, counted } = conversationOf(input);
  const total = said.filter(isCounted).length + counted;
  return { size: Math.max(size, Math.min(size + (compiler.expandBy ?? 10), total)), total };
}

/**
 * Earlier calls that the model asked to see again, each as a round with one call and its result. Unknown calls and
 * those in `shown` are left out.
 */
function loadedRounds(callIds: readonly string[], from: readonly Message[], shown: readonly Message[]): Message[] {
  const wanted = new Set(callIds);
  for (const { calls } of roundsOf(shown).values()) for (const { callId } of calls) wanted.delete(callId);
  const found = new Map<string, Message[]>();
  for (const round of roundsOf(from).values()) {
    for (const [place, { callId }] of round.calls.entries()) {
      if (wanted.has(callId) && (round.results[place] || !found.has(callId))) {
        found.set(callId, pseudoRound(round, place));
      }
    }
  }
  return [...wanted].flatMap((callId) => found.get(callId) ?? []);
}

function pseudoRound({ message, calls, results }: Round, place: number): Message[] {
  const call = calls[place];
  if (!call) return [];
  const id = `loaded:${call.callId}`;
  const { createdAt } = message;
  const asked: Message = {
    id,
    role: "assistant",
    createdAt,
    content: "",
    origin: "runtime",
    toolCalls: [call],
    ...(message.reasoningBy ? { reasoningBy: message.reasoningBy } : {}),
  };
  const result = results[place];
  return result ? [asked, { ...result, id: `${id}:result` }] : [asked];
}

/**
 * The newest `size` messages, results included; fewer where a call would be parted from its results, more where the open turn
 * alone has more, since its messages are always shown. So is the summary of a compaction, which is not counted.
 * Throws `InvalidInputError` unless the size is a whole number of at least 1.
 */
export function windowHistory(size: number): HistoryCompiler {
  wholeNumberRule(1)(size, "windowHistory(): its size");
  return own({
    name: `windowHistory(${size})`,
    internalTools: false,
    compile: (input: CompileInput) => windowOf(size, input),
  });
}

function windowOf(size: number, { history, turnId, turnStart }: CompileInput): readonly Message[] {
  const from = turnStart === undefined ? 0 : tailStart(size, history, turnStart);
  if (from > 1) {
    const tail = history.slice(from);
    const [first] = history;
    if (isLegal(tail) === undefined) {
      return legalWindow(size, first !== undefined && isSummary(first) ? [first, ...tail] : tail, turnId);
    }
  }
  return legalWindow(size, legalMessages(history), turnId);
}

/**
 * An index before the open turn and the newest `size` messages that parts no round. A tail of the history that is legal by itself
 * is also the tail of the legal history: each result in it answers a call in it.
 */
function tailStart(size: number, history: readonly Message[], turnStart: number): number {
  let from = Math.min(turnStart, Math.max(0, history.length - size));
  while (from > 0 && history[from]?.role === "tool") from -= 1;
  return from;
}

function legalWindow(size: number, legal: readonly Message[], turnId: string): readonly Message[] {
  const body = legal.some(isSummary) ? legal.filter((message) => !isSummary(message)) : legal;
  const open = openTurnStart(body, turnId);
  let from = Math.max(0, body.length - size);
  // Results are right behind their call, so a cut parts the two only where it is before a result.
  while (from < open && body[from]?.role === "tool") from += 1;
  from = Math.min(from, open);
  if (from === 0) return legal;
  return legalMessages([...legal.filter(isSummary), ...body.slice(from)]);
}

/** The whole conversation. The default. */
export function fullHistory(): HistoryCompiler {
  return own({
    name: "fullHistory",
    internalTools: false,
    compile: ({ history }: CompileInput) => legalMessages(history),
  });
}

/**
 * The conversation without the traces of earlier turns (`is_trace`): of those only question and final answer. Of the open
 * turn everything stays.
 */
export function withoutTraces(): HistoryCompiler {
  return own({
    name: "withoutTraces",
    internalTools: false,
    compile: ({ history, turnId }: CompileInput) =>
      legalMessages(history.filter((message) => message.metadata?.is_trace !== true || isOfTurn(message, turnId))),
  });
}

/** The compiler of this package that has the name; undefined for one that a user has written. */
export function historyNamed(name: string): HistoryCompiler | undefined {
  const [, kind, size, expandBy] = /^(\w+)(?:\((\d+)(?:, (\d+))?\))?$/.exec(name) ?? [];
  const makers: Readonly<Record<string, () => HistoryCompiler>> = {
    fullHistory,
    withoutTraces,
    windowHistory: () => windowHistory(Number(size)),
    reactHistory: () => reactHistory({ contextWindowSize: Number(size), expandBy: Number(expandBy) }),
  };
  const make = kind !== undefined && Object.hasOwn(makers, kind) ? makers[kind] : undefined;
  try {
    const made = make?.();
    return made?.name === name ? made : undefined;
  } catch {
    // Numbers that this package would not have accepted.
    return undefined;
  }
}

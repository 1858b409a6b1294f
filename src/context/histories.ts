import { describeValue, optionsOf, wholeNumberRule } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { Content, HookPatch, Message, AssistantMessage } from "../state/index.ts";
import { withElidedResults } from "./elided-results.ts";
import { type HistoryBlock, leftOut } from "./history-block.ts";
import { loadedRounds } from "./loaded-rounds.ts";
import { legalMessages, isLegal, isOfTurn, isSummary, openTurnStart } from "./turns-and-rounds.ts";

/** The input of a history compiler. */
export interface CompileInput {
  /** All messages since the last compaction or clear, oldest first. Changes by hooks for one call are applied afterwards. */
  readonly history: readonly Message[];
  /** The open turn: all its messages so far are always visible. */
  readonly turnId: string;
  /**
   * Index in `history` of the open turn's first message, if the runtime knows it; the first message alone may then be a summary.
   * If it is `undefined`, the compiler searches for it, which takes time in a long history.
   */
  readonly turnStart?: number | undefined;
  /** The turn's current window; `null` for the compiler's default. */
  readonly contextWindowSize: number | null;
  /** Earlier calls whose results the model asked to load again, in that order. */
  readonly loadedCallIds: readonly string[];
  /** The messages before the last compaction, or the whole conversation: results are also loaded from these. */
  readonly earlier: readonly Message[];
}

/** Chooses which messages of the conversation are part of one model call. Pure: the same input returns the same messages. */
export interface HistoryCompiler {
  /** Includes its parameters, so that a different name means a different choice. */
  readonly name: string;
  /** Messages of the conversation that are visible at the start of a turn; `undefined` if the window is not limited. */
  readonly contextWindowSize?: number;
  /** How many messages the model adds when it widens the window. */
  readonly expandBy?: number;
  /** Whether the model gets tools for its own context. */
  readonly internalTools: boolean;
  /** In the order of the history, and legal in the sense of `legalMessages`. */
  compile(input: CompileInput): readonly Message[];
}

const ownCompilers = new WeakSet<HistoryCompiler>();

function own(compiler: HistoryCompiler): HistoryCompiler {
  ownCompilers.add(Object.freeze(compiler));
  return compiler;
}

/** Whether the compiler belongs to this package: only those get internal lists without a copy. */
export function isOwnCompiler(compiler: HistoryCompiler): boolean {
  return ownCompilers.has(compiler);
}

export interface Assembly {
  /** The system prompt; `""` for none. */
  readonly instructions: string;
  readonly compiler: HistoryCompiler;
  readonly input: CompileInput;
  /** Changes by the `beforeLlm` hooks of this call, in order. */
  readonly patches: readonly HookPatch[];
}

/**
 * The messages of one model call: the instructions, followed by the compiler's choice with the changes that hooks made for this
 * call. For any input, each tool call has exactly one result directly after it.
 */
export function assembleMessages({ instructions, compiler, input, patches }: Assembly): Message[] {
  // The output of this package's compilers is legal.
  const isOurs = isOwnCompiler(compiler);
  const chosen = isOurs ? compiler.compile(input) : compiledBy(compiler, input);
  const legal = isOurs && patches.length === 0 ? chosen : legalMessages(withPatches(chosen, patches));
  return instructions === "" ? [...legal] : [systemMessageOf(instructions), ...legal];
}

/** How many messages a compiler may add. */
const MOST_ADDED = 1_000;
const roles: ReadonlySet<unknown> = new Set<Message["role"]>(["user", "system", "assistant", "tool"]);

/** Runs the compiler. Throws `InvalidInputError` unless it returns a list of messages. */
function compiledBy(compiler: HistoryCompiler, input: CompileInput): readonly Message[] {
  const most = input.history.length + input.earlier.length + MOST_ADDED;
  const chosen: unknown = compiler.compile(input);
  if (!Array.isArray(chosen) || chosen.length > most) {
    const found = Array.isArray(chosen) ? `a list of ${chosen.length}` : describeValue(chosen);
    throw new InvalidInputError(
      `the history compiler "${compiler.name}" returned ${found}; expected a list of messages, ${most} at most`,
    );
  }
  const wrong = (chosen as readonly unknown[]).findIndex((message) => !isMessage(message));
  if (wrong < 0) return chosen as readonly Message[];
  throw new InvalidInputError(
    `the history compiler "${compiler.name}" returned ${describeValue(chosen[wrong])} at [${wrong}]; expected messages of the conversation`,
  );
}

/** Checks only a few fields, because all messages are checked at each call and most of them come from the conversation. */
function isMessage(message: unknown): boolean {
  if (typeof message !== "object" || message === null) return false;
  const { role, content, id } = message as Partial<Message>;
  return roles.has(role) && typeof id === "string" && (typeof content === "string" || Array.isArray(content));
}

const systemMessages = new Map<string, Message>();
const systemMessagesKept = 64;

/**
 * Instructions rarely change. The same text returns the same message object, because tokens and digests are cached by message.
 */
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
  /** Messages of the conversation that are visible at the start of a turn. Default 10. */
  readonly contextWindowSize?: number | undefined;
  /** How many messages the model adds when it widens the window. Default 10. */
  readonly expandBy?: number | undefined;
}

/**
 * The newest messages of user and assistant without the tool rounds of earlier turns, the open turn in full, and before it the
 * calls that the model loaded again. The window counts messages of user and assistant, including the open turn's input but not
 * its rounds, so it does not move during the turn. A summary is always visible and not counted. The model widens its window with
 * internal tools.
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
 * At least the open turn and one message more than the `size` counted messages before it, so that the result equals that for the
 * whole history; the whole history if the start of the turn is unknown. A summary stays first.
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
  /** The open turn, including its rounds. */
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

/** The newest `size` counted messages, and the messages between them; summaries always. */
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

/** A message without its tool calls and results; text beside tool calls stays. */
function spoken(message: Message): Message | undefined {
  if (message.role === "tool") return undefined;
  if (message.role !== "assistant" || !message.toolCalls || message.toolCalls.length === 0) return message;
  if (isEmpty(message.content)) return undefined;
  let said = textOnly.get(message);
  if (!said) {
    // Reasoning belongs to the calls: providers sign both together.
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
  /** The new size; the old one if no further messages exist. */
  readonly size: number;
  /** How many messages could be visible in total. */
  readonly total: number;
}

/**
 * The next window of a turn: larger by the compiler's `expandBy`, at most the number of messages. `undefined` for a compiler
 * without a window.
 */
export function expandedWindow(compiler: HistoryCompiler, input: CompileInput): ExpandedWindow | undefined {
  if (compiler.contextWindowSize === undefined) return undefined;
  const size = input.contextWindowSize ?? compiler.contextWindowSize;
  const { said, counted } = conversationOf(input);
  const total = said.filter(isCounted).length + counted;
  return { size: Math.max(size, Math.min(size + (compiler.expandBy ?? 10), total)), total };
}

export interface WindowHistoryOptions {
  /**
   * Most messages that are visible. The window grows up to this number, and the next message moves it on to the newest ones. Default:
   * twice the size. The size itself: the window moves with every message, so that no prompt continues the one before.
   */
  readonly upTo?: number | undefined;
}

/**
 * At least the newest `size` messages, including results, and at most `upTo`. The window moves in blocks: in between, each prompt
 * continues the one before, as the prompt caches of providers require. A call and its results are never separated, so a few more may be
 * visible (with `upTo` equal to the size: fewer). The open turn's messages are always visible, and so is the summary of a compaction,
 * which is not counted. Throws `InvalidInputError` unless the size is a whole number of at least 1, and `upTo` one of at least the size.
 */
export function windowHistory(size: number, options?: WindowHistoryOptions): HistoryCompiler {
  wholeNumberRule(1)(size, "windowHistory(): its size");
  const { upTo = Math.min(2 * size, Number.MAX_SAFE_INTEGER) } = optionsOf<WindowHistoryOptions>(
    options,
    "windowHistory()",
    { rules: { upTo: wholeNumberRule(size) }, instead: { max: "upTo", maxSize: "upTo", most: "upTo" } },
  );
  return own({
    name: upTo === size ? `windowHistory(${size})` : `windowHistory(${size}, ${upTo})`,
    internalTools: false,
    compile: (input: CompileInput) => windowOf({ least: size, most: upTo }, input),
  });
}

function windowOf(block: HistoryBlock, { history, turnId, turnStart }: CompileInput): readonly Message[] {
  const summaries = (turnStart === undefined ? history : history.slice(0, 1)).filter(isSummary);
  const body = summaries.length === 0 ? history : history.filter((message) => !isSummary(message));
  const open = turnStart === undefined ? openTurnStart(body, turnId) : Math.max(0, turnStart - summaries.length);
  let from = Math.min(leftOut(block, body.length), open);
  // Results directly follow their call. A window that moves in blocks has room for a round more.
  const step = block.most > block.least ? -1 : 1;
  while (from > 0 && from < open && body[from]?.role === "tool") from += step;
  return legalMessages(from === 0 ? history : [...summaries, ...body.slice(from)]);
}

export interface ElideResultsOptions {
  /** How many of the newest rounds of tool calls are always shown completely. Default 5. */
  readonly keepRounds?: number | undefined;
  /** Longest result of an older round that is still shown, in characters. Default 2,000. */
  readonly overCharacters?: number | undefined;
}

/**
 * The whole conversation, in which a short note replaces the long results of older tool rounds, and those with images or files. Rounds
 * grow old in blocks of `keepRounds`, so that in between each prompt continues the one before. The model loads a result again with
 * `load_tool_results`, until the end of the turn.
 */
export function elideResults(options?: ElideResultsOptions): HistoryCompiler {
  const { keepRounds = 5, overCharacters = 2_000 } = optionsOf<ElideResultsOptions>(options, "elideResults()", {
    rules: { keepRounds: wholeNumberRule(1), overCharacters: wholeNumberRule(1) },
    instead: { keep: "keepRounds", rounds: "keepRounds", maxCharacters: "overCharacters" },
  });
  return own({
    name: `elideResults(${keepRounds}, ${overCharacters})`,
    internalTools: true,
    compile: (input: CompileInput) => withElidedResults({ keepRounds, overCharacters }, input),
  });
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
 * The conversation without the intermediate messages of earlier turns (`is_trace`): only their question and final answer. The
 * open turn is complete.
 */
export function withoutTraces(): HistoryCompiler {
  return own({
    name: "withoutTraces",
    internalTools: false,
    compile: ({ history, turnId }: CompileInput) =>
      legalMessages(history.filter((message) => message.metadata?.is_trace !== true || isOfTurn(message, turnId))),
  });
}

/** The compiler of this package with this name; `undefined` for a user's compiler. */
export function historyNamed(name: string): HistoryCompiler | undefined {
  const [, kind, first, second] = /^(\w+)(?:\((\d+)(?:, (\d+))?\))?$/.exec(name) ?? [];
  const size = Number(first);
  const makers: Readonly<Record<string, () => HistoryCompiler>> = {
    fullHistory,
    withoutTraces,
    windowHistory: () => windowHistory(size, { upTo: second === undefined ? size : Number(second) }),
    reactHistory: () => reactHistory({ contextWindowSize: size, expandBy: Number(second) }),
    elideResults: () => elideResults({ keepRounds: size, overCharacters: Number(second) }),
  };
  const make = kind !== undefined && Object.hasOwn(makers, kind) ? makers[kind] : undefined;
  try {
    const made = make?.();
    return made?.name === name ? made : undefined;
  } catch {
    // Parameters that this package would not have accepted.
    return undefined;
  }
}

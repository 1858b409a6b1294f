import { optionsOf, wholeNumberRule } from "../base/index.ts";
import type { AssistantMessage, Content, Message } from "../state/index.ts";
import type { CompileInput, HistoryCompiler } from "./history-compiler.ts";
import { legalMessages } from "./legal-messages.ts";
import { loadedRounds } from "./loaded-rounds.ts";
import { isSummary, openTurnStart } from "./open-turn.ts";

export interface ReactHistoryOptions {
  /** Messages of the conversation that a turn sees at first. Default 10. */
  readonly contextWindowSize?: number | undefined;
  /** By how many the model widens the window at a time. Default 10. */
  readonly expandBy?: number | undefined;
}

/**
 * The context of seed 001: the newest messages of user and assistant, without the tool rounds of earlier turns; the open
 * turn in full; and in front of it the calls that the model loaded again. The window counts what user and assistant
 * said, the open turn's input included and its rounds not, so it does not move while the turn works. A summary is always
 * shown and never counted. The model widens its own window by internal tools (row R6).
 */
export function reactHistory(options?: ReactHistoryOptions): HistoryCompiler {
  const { contextWindowSize = 10, expandBy = 10 } = optionsOf<ReactHistoryOptions>(options, "reactHistory()", {
    rules: { contextWindowSize: wholeNumberRule(1), expandBy: wholeNumberRule(1) },
    instead: { size: "contextWindowSize", windowSize: "contextWindowSize" },
  });
  return Object.freeze({
    name: `reactHistory(${contextWindowSize}, ${expandBy})`,
    contextWindowSize,
    expandBy,
    internalTools: true,
    compile: (input: CompileInput) => reactContext(input, input.contextWindowSize ?? contextWindowSize),
  });
}

function reactContext(input: CompileInput, size: number): readonly Message[] {
  const { earlier, loadedCallIds } = input;
  const { said, open, counted } = conversationOf(input);
  const loaded = loadedRounds(
    loadedCallIds,
    earlier.length === 0 ? input.history : [...earlier, ...input.history],
    open,
  );
  return legalMessages([...newestOf(said, size - counted), ...loaded, ...open]);
}

interface ConversationParts {
  /** What was said before the open turn. */
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

/** The newest so many that count, with what stands among them; summaries always. */
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

/** A message as part of the conversation: what was said along with tool calls stays, the calls and results do not. */
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
  /** How many messages there are to be shown in all. */
  readonly total: number;
}

/**
 * The next window of a turn: wider by the compiler's `expandBy`, never past the number of messages (row R4). For a
 * compiler without a window undefined.
 */
export function expandedWindow(compiler: HistoryCompiler, input: CompileInput): ExpandedWindow | undefined {
  if (compiler.contextWindowSize === undefined) return undefined;
  const size = input.contextWindowSize ?? compiler.contextWindowSize;
  const { said, counted } = conversationOf(input);
  const total = said.filter(isCounted).length + counted;
  return { size: Math.max(size, Math.min(size + (compiler.expandBy ?? 10), total)), total };
}

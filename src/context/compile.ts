import { describeValue } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { Content, HookPatch, Message } from "../state/index.ts";
import { legalMessages } from "./turns-and-rounds.ts";

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
 * in front. Each tool call has exactly one result right behind it, whatever the input.
 */
export function assembleMessages({ instructions, compiler, input, patches }: Assembly): Message[] {
  return [...legalMessages(compileMessages(instructions, compiledBy(compiler, input), patches))];
}

/** How many messages a compiler may add. */
const MOST_ADDED = 1_000;
const roles: ReadonlySet<unknown> = new Set<Message["role"]>(["user", "system", "assistant", "tool"]);

/** The compiler's choice. Throws `InvalidInputError` where that is no list of messages. */
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

/**
 * The instructions as a system message, and history with the changes of `beforeLlm` hooks for this call.
 */
export function compileMessages(
  instructions: string,
  history: readonly Message[],
  patches: readonly HookPatch[],
): Message[] {
  const messages: Message[] = [];
  if (instructions !== "") messages.push(systemMessageOf(instructions));
  messages.push(...withPatches(history, patches));
  return messages;
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

/** The input of a history compiler. */
export interface CompileInput {
  /** Oldest first, since the last compaction or clear. Changes of hooks for one call are applied afterwards. */
  readonly history: readonly Message[];
  /** The open turn: all its messages so far are always shown. */
  readonly turnId: string;
  /**
   * Index in `history` of the open turn's first message, where the runtime knows it; then only the first message can be a summary
   * before it. Absent: it is searched for, which takes time in a long history.
   */
  readonly turnStart?: number | undefined;
  /** The window as the turn has it now; null: the compiler's own. */
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
  /** Messages of the conversation that a turn sees at first; absent: there is no window that the model could widen. */
  readonly contextWindowSize?: number;
  /** By how many messages the model widens the window at a time. */
  readonly expandBy?: number;
  /** Whether the model is given tools on its own context (row R6). */
  readonly internalTools: boolean;
  /** Legal as `legalMessages` makes it, in the order of the history. */
  compile(input: CompileInput): readonly Message[];
}

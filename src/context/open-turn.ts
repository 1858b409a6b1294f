import type { Message } from "../state/index.ts";

/** Origin of the message that replaces those hidden by a compaction. */
export const COMPACTION_ORIGIN = "compaction";

export function isSummary(message: Message): boolean {
  return message.origin === COMPACTION_ORIGIN;
}

/** Whether a message belongs to the turn; a summary belongs to none, whichever turn wrote it. */
export function isOfTurn(message: Message, turnId: string): boolean {
  if (isSummary(message)) return false;
  const owner = message.metadata?.execution_id;
  return owner === undefined ? message.id.startsWith(`${turnId}:`) : owner === turnId;
}

/** Index of the first message of the turn; the number of messages when there is none. */
export function openTurnStart(messages: readonly Message[], turnId: string): number {
  const index = messages.findIndex((message) => isOfTurn(message, turnId));
  return index < 0 ? messages.length : index;
}

/** Whether a person or program said it to the agent: not a hook, a tool or a summary. */
export function isInput(message: Message): boolean {
  if (message.role !== "user" || message.metadata?.is_trace === true) return false;
  return !isSummary(message) && !message.origin.startsWith("hook:");
}

/**
 * Index from which on the messages are the open turn's task and work: the turn's first message or, for a turn without input
 * (row L5), the input that it continues.
 */
export function taskStart(messages: readonly Message[], turnId: string): number {
  const start = openTurnStart(messages, turnId);
  if (messages.slice(start).some(isInput)) return start;
  const input = messages.slice(0, start).findLastIndex(isInput);
  return input < 0 ? start : input;
}

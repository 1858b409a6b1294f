import { deepFreeze } from "../base/index.ts";
import type { AssistantMessage, Message, ToolCallRequest, ToolMessage } from "../state/index.ts";

/** A message with tool calls, and the results that answer it. */
export interface Round {
  readonly message: AssistantMessage;
  /** Each call once, in the order of the message. */
  readonly calls: readonly ToolCallRequest[];
  /** By index of the call; `undefined` if it has no result. */
  readonly results: (ToolMessage | undefined)[];
  /** Index of its last result among the messages; index of the message itself if it has no results. */
  last: number;
}

/**
 * The rounds of a list of messages, by index of the message with the calls. A result answers the latest call of its id before it;
 * of two results the first counts. Runs in linear time.
 */
export function roundsOf(messages: readonly Message[]): Map<number, Round> {
  const rounds = new Map<number, Round>();
  const latest = new Map<string, OpenCall>();
  for (const [index, message] of messages.entries()) {
    if (message.role === "assistant" && message.toolCalls && message.toolCalls.length > 0) {
      const calls = distinctCalls(message.toolCalls);
      const round: Round = { message, calls, results: calls.map(() => undefined), last: index };
      rounds.set(index, round);
      for (const [place, { callId }] of calls.entries()) latest.set(callId, { round, place });
    } else if (message.role === "tool") {
      const open = latest.get(message.callId);
      if (!open || open.round.results[open.place]) continue;
      open.round.results[open.place] = message;
      open.round.last = index;
    }
  }
  return rounds;
}

interface OpenCall {
  readonly round: Round;
  readonly place: number;
}

/** Returns the same list if no id occurs twice, as in every message that the runtime wrote. */
function distinctCalls(calls: readonly ToolCallRequest[]): readonly ToolCallRequest[] {
  const known = new Set<string>();
  for (const { callId } of calls) known.add(callId);
  if (known.size === calls.length) return calls;
  // The first call of each id removes the id from the set.
  return calls.filter(({ callId }) => known.delete(callId));
}

/** Every call has its result. */
export function isComplete({ results }: Round): boolean {
  return !results.includes(undefined);
}

/**
 * Where the messages may be cut: true at an index means that every call before it has its result before it too. The list has one
 * more entry than there are messages.
 */
export function cutPlaces(messages: readonly Message[]): boolean[] {
  const rounds = roundsOf(messages);
  const places: boolean[] = [];
  let reach = -1;
  for (let index = 0; index <= messages.length; index += 1) {
    places.push(reach < index);
    reach = Math.max(reach, rounds.get(index)?.last ?? -1);
  }
  return places;
}

/** Replaces a result that is not in the context. */
export const ABSENT_RESULT = "The result of this call is not in the context.";

/**
 * The same messages in an order that every provider accepts: each call has exactly one result directly after its message, in the
 * order of the calls. A missing result is replaced by a note; results without a call and duplicate results are dropped; messages
 * between a call and its results move after them. All other messages keep their order. Runs in linear time; returns the same
 * array if nothing changes.
 */
export function legalMessages(messages: readonly Message[]): readonly Message[] {
  if (isLegal(messages) === undefined) return messages;
  const rounds = roundsOf(messages);
  const legal: Message[] = [];
  for (const [index, message] of messages.entries()) {
    if (message.role === "tool") continue;
    const round = rounds.get(index);
    if (round) appendRound(legal, round);
    else legal.push(message);
  }
  return legal;
}

function appendRound(messages: Message[], { message, calls, results }: Round): void {
  const isWhole = calls === message.toolCalls;
  messages.push(isWhole ? message : deepFreeze({ ...message, toolCalls: [...calls] }));
  for (const [place, call] of calls.entries()) {
    const result = results[place] ?? absentResult(call, message.createdAt);
    // The provider only knows its own id of the call.
    messages.push(
      result.providerId === call.providerId ? result : Object.freeze({ ...result, providerId: call.providerId }),
    );
  }
}

function absentResult({ callId, providerId }: ToolCallRequest, createdAt: number): ToolMessage {
  return Object.freeze({
    id: `${callId}:absent`,
    role: "tool",
    callId,
    providerId,
    createdAt,
    content: ABSENT_RESULT,
    isError: true,
    origin: "runtime",
  });
}

/**
 * Describes the first mistake in the order of the messages; `undefined` if each call has exactly one result directly after it.
 */
export function isLegal(messages: readonly Message[]): string | undefined {
  let index = 0;
  for (let message = messages[index]; message !== undefined; message = messages[index]) {
    if (message.role === "tool")
      return `message ${index} is the result of ${message.callId}, which does not follow its call`;
    const calls = message.role === "assistant" ? message.toolCalls : undefined;
    const fault = calls && roundFault(messages, index, calls);
    if (fault !== undefined) return fault;
    index += 1 + (calls?.length ?? 0);
  }
  return undefined;
}

function roundFault(
  messages: readonly Message[],
  index: number,
  calls: readonly ToolCallRequest[],
): string | undefined {
  for (const [place, { callId, providerId }] of calls.entries()) {
    const result = messages[index + 1 + place];
    const found = result?.role === "tool" ? `the result of ${result.callId}` : (result?.role ?? "nothing");
    if (result?.role !== "tool" || result.callId !== callId) {
      return `message ${index + 1 + place} is ${found}, but the result of ${callId} was expected`;
    }
    if (result.providerId !== providerId) return `the result of ${callId} has another provider id than its call`;
  }
  if (calls.length > 1 && new Set(calls.map(({ callId }) => callId)).size < calls.length) {
    return `message ${index} contains the same call twice`;
  }
  return undefined;
}

/** Origin of the message that replaces the messages hidden by a compaction. */
export const COMPACTION_ORIGIN = "compaction";

export function isSummary(message: Message): boolean {
  return message.origin === COMPACTION_ORIGIN;
}

/** Whether a message belongs to the turn; a summary belongs to no turn. */
export function isOfTurn(message: Message, turnId: string): boolean {
  if (isSummary(message)) return false;
  const owner = message.metadata?.execution_id;
  return owner === undefined ? message.id.startsWith(`${turnId}:`) : owner === turnId;
}

/** Index of the turn's first message; the number of messages if there is none. */
export function openTurnStart(messages: readonly Message[], turnId: string): number {
  const index = messages.findIndex((message) => isOfTurn(message, turnId));
  return index < 0 ? messages.length : index;
}

/** Whether a person or program sent the message to the agent, as opposed to a hook, a tool or a compaction. */
export function isInput(message: Message): boolean {
  if (message.role !== "user" || message.metadata?.is_trace === true) return false;
  return !isSummary(message) && !message.origin.startsWith("hook:");
}

/**
 * Index at which the open turn's task and work begin: the turn's first message or, for a turn without input, the input that it
 * continues.
 */
export function taskStart(messages: readonly Message[], turnId: string): number {
  const start = openTurnStart(messages, turnId);
  if (messages.slice(start).some(isInput)) return start;
  const input = messages.slice(0, start).findLastIndex(isInput);
  return input < 0 ? start : input;
}

import type { AssistantMessage, Message, ToolCallRequest, ToolMessage } from "../state/index.ts";

/** A message with tool calls, and the results that answer it. */
export interface Round {
  readonly message: AssistantMessage;
  /** Each call once, in the order of the message. */
  readonly calls: readonly ToolCallRequest[];
  /** By the place of the call; undefined where no result came. */
  readonly results: (ToolMessage | undefined)[];
  /** Place of its last result among the messages; its own where it has none. */
  last: number;
}

interface OpenCall {
  readonly round: Round;
  readonly place: number;
}

/**
 * The rounds of a list of messages, by the place of the message with the calls. A result answers the latest call of its
 * id that stands before it; of two results the first counts. Linear in the number of messages.
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

/** The calls themselves where no id comes twice, which is always so for what the runtime wrote. */
function distinctCalls(calls: readonly ToolCallRequest[]): readonly ToolCallRequest[] {
  const known = new Set<string>();
  for (const { callId } of calls) known.add(callId);
  if (known.size === calls.length) return calls;
  // The first of each id takes it out of the set.
  return calls.filter(({ callId }) => known.delete(callId));
}

/** Every call has its result. */
export function isComplete({ results }: Round): boolean {
  return !results.includes(undefined);
}

/**
 * Where the messages may be cut: `true` at a place means that no call before it has its result at or behind it. One
 * more place than there are messages.
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

import type { Message } from "../state/index.ts";
import { type Round, roundsOf } from "./turns-and-rounds.ts";

/**
 * Earlier calls that the model asked to load again, each as a round with one call and its result. Unknown calls and calls in
 * `shown` are skipped.
 */
export function loadedRounds(
  callIds: readonly string[],
  from: readonly Message[],
  shown: readonly Message[],
): Message[] {
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

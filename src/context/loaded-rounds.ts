import type { Message } from "../state/index.ts";
import { type Round, roundsOf } from "./rounds.ts";

/**
 * Earlier calls as rounds of their own, each a message with the one call and its result, for calls that the model asked
 * to see again (seed 001). Unknown calls and those that `shown` has anyway are left out.
 */
export function loadedRounds(
  callIds: readonly string[],
  from: readonly Message[],
  shown: readonly Message[],
): Message[] {
  if (callIds.length === 0) return [];
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
  const asked: Message = { id, role: "assistant", createdAt, content: "", origin: "runtime", toolCalls: [call] };
  const result = results[place];
  return result ? [asked, { ...result, id: `${id}:result` }] : [asked];
}

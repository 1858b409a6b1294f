import type { ReservationAsk } from "../budget/index.ts";
import {
  type LastCall,
  type Message,
  type ModelRequest,
  type StopSignal,
  type TurnState,
  signalOfLimit,
  type Usage,
} from "../state/index.ts";

/** What the model is told at the end of the prompt of a turn's last permitted call. It is in that prompt alone. */
export const LAST_CALL_NOTE =
  "This is the last model call that the budget of this turn allows, and tools are no longer available. Answer now, with what you have; say plainly what is missing.";

const note: Message = Object.freeze({
  id: "last-call",
  role: "user",
  createdAt: 0,
  content: LAST_CALL_NOTE,
  origin: "runtime",
});

/** Tokens of the note, generously, and what no tokenizer exceeds; with what frames a message. */
const NOTE_TOKENS = 48;
const NOTE_BOUND = Buffer.byteLength(LAST_CALL_NOTE) + 16;

/** Whether the turn's budget asks that its last call be told of. */
export function finalAnswerOf({ limits }: TurnState): Pick<ReservationAsk, "finalAnswer"> {
  return limits.finalAnswer === true ? { finalAnswer: true } : {};
}

/** The ask with room for the note: whether a call is the last one is known only when it is granted. */
export function withNote(ask: ReservationAsk): ReservationAsk {
  if (ask.finalAnswer !== true) return ask;
  return { ...ask, promptTokens: ask.promptTokens + NOTE_TOKENS, promptBound: ask.promptBound + NOTE_BOUND };
}

/**
 * The same request for a call after which none is allowed: no tool may be called, and the model is told so. The tools stay
 * in it, since providers keep prompts in their caches by how they begin, and tools come first.
 */
export function asLastCall(request: ModelRequest): ModelRequest {
  const toolChoice = request.tools === undefined ? {} : ({ toolChoice: "none" } as const);
  return { ...request, ...toolChoice, messages: [...request.messages, note] };
}

/** The stop of a turn whose last permitted answer asks for tools all the same: it names the limit that left no further call. */
export function lastCallSignal(last: LastCall, usage: Usage, costMicros: number | null): StopSignal {
  const { limit, accountId, max, holder } = last;
  const tokens = limit === "maxTokens" ? usage.inputTokens + usage.outputTokens : 0;
  const cost = limit === "maxCostMicros" ? (costMicros ?? 0) : 0;
  return signalOfLimit(limit, accountId, { used: last.used + tokens + cost, max, holder });
}

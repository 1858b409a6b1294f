import type { ReservationAsk, Settlement } from "../../src/budget/index.ts";
import type { Entry, EntryOf, Message } from "../../src/state/index.ts";
import type { Batch, Committed } from "../../src/stores/index.ts";
import { NOW, ROOT, TURN } from "./names.ts";

export interface Envelope {
  readonly seq: number;
  readonly at: number;
  readonly epoch: number;
}
export type MakeEntry = (envelope: Envelope) => Entry;
export const starting: MakeEntry = (envelope) => ({ type: "agent.starting", ...envelope });

export function note(message: string): MakeEntry {
  return (envelope) => ({ type: "warning", ...envelope, code: "note", message });
}

export function messageOf(id: string, content: string = `text of ${id}`): Message {
  return { role: "user", id, createdAt: NOW, content, origin: "user" };
}

export function turnEnded(changes: Partial<EntryOf<"turn.ended">> = {}): MakeEntry {
  return (envelope) => ({
    type: "turn.ended",
    ...envelope,
    turnId: TURN,
    number: 1,
    outcome: "completed",
    stopReason: "completed",
    signal: null,
    outputMessageId: null,
    steps: 1,
    toolCalls: 0,
    usage: { inputTokens: 0, outputTokens: 0 },
    costMicros: null,
    error: null,
    lifecycle: "ready",
    ...changes,
  });
}

export function askOf(changes: Partial<ReservationAsk> = {}): ReservationAsk {
  return {
    accountId: `turn:${TURN}`,
    agentId: ROOT,
    key: "turn:1",
    promptTokens: 100,
    promptBound: 100,
    outputTokens: 400,
    minimumOutputTokens: 256,
    price: null,
    opensStep: true,
    model: "m",
    ...changes,
  };
}

export function modelRequested(
  ask: Partial<ReservationAsk> = {},
  changes: Partial<EntryOf<"model.requested">> = {},
): MakeEntry {
  return (envelope) => ({
    type: "model.requested",
    ...envelope,
    turnId: TURN,
    step: 1,
    attempt: 1,
    model: "m",
    promptHash: "p",
    messageId: "answer",
    ask: askOf(ask),
    price: null,
    reservation: null,
    ...changes,
  });
}

export function toolStarted(changes: Partial<EntryOf<"tool.started">> = {}): MakeEntry {
  return (envelope) => ({
    type: "tool.started",
    ...envelope,
    turnId: TURN,
    step: 1,
    callId: `${TURN}:1:0`,
    name: "search",
    attempt: 1,
    effect: "once",
    idempotencyKey: "k",
    accountId: `turn:${TURN}`,
    ...changes,
  });
}

/** The reservation of a granted model request. */
export function reservationIn(outcome: Committed): Settlement["reservation"] {
  const entry = outcome.entries.find((one) => one.type === "model.requested");
  if (!entry?.reservation) throw new Error(`no reservation was granted: ${JSON.stringify(outcome.entries)}`);
  return entry.reservation;
}

export function settled(
  reservation: Settlement["reservation"],
  changes: Partial<Settlement> = {},
): { entries: MakeEntry[]; moves: Batch["moves"] } {
  const settlement = { reservation, tokens: 120, costMicros: 0, usage: null, unconfirmed: false, ...changes };
  return { entries: [note("answered")], moves: [{ type: "settle", settlement }] };
}

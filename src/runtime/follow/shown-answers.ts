import type { Entry, EntryOf } from "../../state/index.ts";
import { isNotice, type LiveNotice, type LivePart, type LivePartOf } from "./live-part.ts";

type Piece = LivePartOf<"text" | "reasoning" | "call">;
export type Said = Exclude<LivePart, LiveNotice | { kind: "progress" }>;

const none: ReadonlyMap<number, number> = new Map();

interface Shown {
  /** Seq of the entry that requested the model call, or that ended the request. */
  readonly seq: number;
  readonly isOpen: boolean;
  /** Number of characters that the stream has emitted. */
  text: number;
  reasoning: number;
  /** By index, the characters of a call's arguments. */
  calls: ReadonlyMap<number, number>;
  /** Set if the client may lack pieces: it receives the whole text before any further piece. */
  isTorn: boolean;
}

/**
 * Tracks how much of each agent's current answer one stream has emitted.
 *
 * Invariants
 * 1. Pieces of an answer are emitted in order, each character once, unless the whole text replaces them.
 * 2. No part of a call is emitted after its durable end, or after the start of a later call.
 */
export class ShownAnswers {
  readonly #answers = new Map<string, Shown>();
  readonly #settled = new Map<string, Set<string>>();
  /** Calls that are missing from the journal up to the stream's position. */
  readonly #strange = new Map<string, number>();

  /** `isPast`: the client received the entry before this stream started, and perhaps live parts after it. */
  note(agentId: string, entry: Entry, isPast: boolean): void {
    const { seq } = entry;
    switch (entry.type) {
      case "model.requested":
        this.#answers.set(agentId, { seq, isOpen: true, text: 0, reasoning: 0, calls: none, isTorn: isPast });
        break;
      case "turn.started":
        this.#settled.delete(agentId);
        break;
      case "tool.settled":
        this.#settled.set(agentId, (this.#settled.get(agentId) ?? new Set()).add(entry.callId));
        break;
      case "model.responded":
      case "model.failed":
      case "turn.ended":
        this.#answers.set(agentId, { seq, isOpen: false, text: 0, reasoning: 0, calls: none, isTorn: false });
        break;
      default:
    }
  }

  /** How many characters of a committed answer the client has: -1 if unknown, `undefined` if it needs no more. */
  givenOf(agentId: string, entry: EntryOf<"model.responded">): number | undefined {
    if (!entry.hasText) return undefined;
    const shown = this.#answers.get(agentId);
    // The call was made before this stream started, so an earlier stream may have emitted part of it.
    if (!shown || (shown.isOpen && shown.isTorn)) return -1;
    return shown.isOpen && shown.text > 0 ? shown.text : undefined;
  }

  /** Whether the stream has seen no call of this agent yet, so that the journal must be read for this one. */
  isUnknown(part: LivePart): part is Said {
    if (part.kind === "progress" || isNotice(part)) return false;
    return !this.#answers.has(part.agentId) && this.#strange.get(part.agentId) !== part.seq;
  }

  /** Applies the journal's entries from the part's call up to the stream's position. */
  learn(part: Said, entries: readonly Entry[]): void {
    const [first] = entries;
    if (first?.seq !== part.seq || first.type !== "model.requested") this.#strange.set(part.agentId, part.seq);
    else for (const entry of entries) this.note(part.agentId, entry, true);
  }

  /** Records that parts were dropped before they were emitted. */
  missed(): void {
    for (const shown of this.#answers.values()) shown.isTorn = true;
  }

  /** Whether a part belongs to the call that is open at the stream's position. */
  isOpen(part: Said): boolean {
    const shown = this.#answers.get(part.agentId);
    return shown !== undefined && shown.isOpen && shown.seq === part.seq;
  }

  /** The part, cut to what the client lacks; `undefined` if the client has all of it, "gap" if something before it is missing. */
  take(part: LivePart): LivePart | "gap" | undefined {
    if (isNotice(part)) return part;
    if (part.kind === "progress") return this.#settled.get(part.agentId)?.has(part.callId) ? undefined : part;
    const shown = this.#answers.get(part.agentId);
    if (!shown?.isOpen || shown.seq !== part.seq) return undefined;
    if (part.kind === "output") return part;
    return part.kind === "whole" ? takeWhole(shown, part) : takePiece(shown, part);
  }
}

function takeWhole(shown: Shown, part: LivePartOf<"whole">): LivePart | undefined {
  const reasoning = part.reasoning?.length ?? 0;
  const calls = new Map((part.calls ?? []).map(({ index, text }) => [index, text.length]));
  // It was sent before the pieces that the client already has.
  const isOld = [...shown.calls].some(([index, given]) => (calls.get(index) ?? -1) < given);
  if (isOld || part.text.length < shown.text || reasoning < shown.reasoning) return undefined;
  const hasNewCalls = [...calls].some(([index, length]) => length > (shown.calls.get(index) ?? -1));
  const isNew = part.text.length > shown.text || reasoning > shown.reasoning || hasNewCalls;
  const isGiven = isNew || (shown.isTorn && part.text.length + reasoning + calls.size > 0);
  Object.assign(shown, { text: part.text.length, reasoning, calls, isTorn: false });
  return isGiven ? part : undefined;
}

function takePiece(shown: Shown, part: Piece): LivePart | "gap" | undefined {
  // A call that was not shown yet lacks its name too.
  const known = part.kind === "call" ? shown.calls.get(part.index) : shown[part.kind];
  const given = known ?? 0;
  const end = part.offset + part.text.length;
  if (!shown.isTorn && known !== undefined && end <= given) return undefined;
  if (shown.isTorn || part.offset > given) {
    shown.isTorn = true;
    return "gap";
  }
  if (part.kind === "call") shown.calls = new Map([...shown.calls, [part.index, end]]);
  else shown[part.kind] = end;
  if (part.offset === given) return part;
  return { ...part, offset: given, text: part.text.slice(given - part.offset) };
}

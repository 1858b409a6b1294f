import type { Entry, EntryOf } from "../../state/index.ts";
import type { LivePart, LivePartOf } from "./live-part.ts";

type Piece = LivePartOf<"text" | "reasoning">;
type Said = Exclude<LivePart, { kind: "progress" | "warning" }>;

interface Shown {
  /** Of the entry that asked the model, or ended that. */
  readonly seq: number;
  readonly isOpen: boolean;
  /** How much of it the stream has given. */
  text: number;
  reasoning: number;
  /** What the client has of it is not known, or something is missing: it gets all of it before anything else. */
  isTorn: boolean;
}

/**
 * What one stream has given of the answers that are being written, agent by agent.
 *
 * Invariants
 * 1. Pieces of an answer are given in order, each character once, unless the whole takes their place.
 * 2. Nothing of a call is given once the stream has given the durable end of it, or the beginning of a later one.
 */
export class ShownAnswers {
  readonly #answers = new Map<string, Shown>();
  readonly #settled = new Map<string, Set<string>>();
  /** Calls of which the journal up to here knows nothing. */
  readonly #strange = new Map<string, number>();

  /** `isPast`: the client had it before this stream began, and perhaps live parts that came after it. */
  note(agentId: string, entry: Entry, isPast: boolean): void {
    const { seq } = entry;
    switch (entry.type) {
      case "model.requested":
        this.#answers.set(agentId, { seq, isOpen: true, text: 0, reasoning: 0, isTorn: isPast });
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
        this.#answers.set(agentId, { seq, isOpen: false, text: 0, reasoning: 0, isTorn: false });
        break;
      default:
    }
  }

  /** How much of an answer that is now committed the client has; undefined where it is not owed the rest. */
  givenOf(agentId: string, entry: EntryOf<"model.responded">): number | undefined {
    if (!entry.hasText) return undefined;
    const shown = this.#answers.get(agentId);
    // Its call was made before this stream began: an earlier one may have shown part of it.
    if (!shown || (shown.isOpen && shown.isTorn)) return -1;
    return shown.isOpen && shown.text > 0 ? shown.text : undefined;
  }

  /** Whether nothing was seen of this agent's calls yet, so that the journal has to be asked about this one. */
  isUnknown(part: Said): boolean {
    return !this.#answers.has(part.agentId) && this.#strange.get(part.agentId) !== part.seq;
  }

  /** The journal's entries from the part's call on, as far as the stream has come. */
  learn(part: Said, entries: readonly Entry[]): void {
    const [first] = entries;
    if (first?.seq !== part.seq || first.type !== "model.requested") this.#strange.set(part.agentId, part.seq);
    else for (const entry of entries) this.note(part.agentId, entry, true);
  }

  /** Parts were dropped before they could be given. */
  missed(): void {
    for (const shown of this.#answers.values()) shown.isTorn = true;
  }

  /** Whether a part is about the call that is under way, as far as the stream has come. */
  isOpen(part: Said): boolean {
    const shown = this.#answers.get(part.agentId);
    return shown !== undefined && shown.isOpen && shown.seq === part.seq;
  }

  /** What of a part is to be given; "gap" when something before it is missing. */
  take(part: LivePart): LivePart | "gap" | undefined {
    if (part.kind === "warning") return part;
    if (part.kind === "progress") return this.#settled.get(part.agentId)?.has(part.callId) ? undefined : part;
    const shown = this.#answers.get(part.agentId);
    if (!shown?.isOpen || shown.seq !== part.seq) return undefined;
    return part.kind === "whole" ? takeWhole(shown, part) : takePiece(shown, part);
  }
}

function takeWhole(shown: Shown, part: LivePartOf<"whole">): LivePart | undefined {
  const reasoning = part.reasoning?.length ?? 0;
  // It was on its way while more was given.
  if (part.text.length < shown.text || reasoning < shown.reasoning) return undefined;
  const isNew = part.text.length > shown.text || reasoning > shown.reasoning;
  const isGiven = isNew || (shown.isTorn && part.text.length + reasoning > 0);
  Object.assign(shown, { text: part.text.length, reasoning, isTorn: false });
  return isGiven ? part : undefined;
}

function takePiece(shown: Shown, part: Piece): LivePart | "gap" | undefined {
  const given = shown[part.kind];
  const end = part.offset + part.text.length;
  if (!shown.isTorn && end <= given) return undefined;
  if (shown.isTorn || part.offset > given) {
    shown.isTorn = true;
    return "gap";
  }
  shown[part.kind] = end;
  return { ...part, offset: given, text: part.text.slice(given - part.offset) };
}

import { eventOfPart, type LivePart } from "../../runtime/index.ts";
import { parseCursor } from "../../state/index.ts";
import type { FeedEntry, LiveEvent } from "./messages.ts";

type Said = Extract<LivePart, { readonly kind: "whole" }>;
type Progress = Extract<LivePart, { readonly kind: "progress" }>;

/** An answer that a model is writing, with all pieces received so far. */
interface OpenAnswer {
  readonly base: Said;
  text: string;
  reasoning: string;
  /** True while a piece is missing. Readers get nothing more until the whole answer is received. */
  isTorn: boolean;
}

/** Most characters kept of one answer and of one tool update. Readers get longer texts once they are committed. */
const MOST_CHARACTERS = 400_000;
const MOST_OF_UPDATE = 20_000;

/** How much of each open answer and of each tool's progress was sent to one reader. */
export type Given = Map<string, { readonly seq: number; readonly text: number; readonly reasoning: number }>;

/**
 * The answers that the models of one tree are writing, and the last progress of its tools. They are not stored; a
 * reader that missed a piece gets the whole answer.
 *
 * Invariants
 * 1. There is at most one answer per agent: the answer of its newest call.
 * 2. Nothing of a call is sent to a reader after the entry that ended the call.
 */
export class LiveAnswers {
  readonly #answers = new Map<string, OpenAnswer>();
  readonly #progress = new Map<string, Progress>();
  /** By agent, the entry that ended its newest answer. Pieces of earlier calls are ignored. */
  readonly #ended = new Map<string, number>();

  /** Adds a piece. Returns false if an earlier piece is missing; the caller then requests the whole answer. */
  take(part: LivePart): boolean {
    // The inspector shows the text of an answer, not its value.
    if (part.kind === "warning" || part.kind === "output") return true;
    if (part.kind === "progress") {
      if (JSON.stringify(part.update).length <= MOST_OF_UPDATE) this.#progress.set(part.callId, part);
      return true;
    }
    const { agentId, seq } = part;
    const known = this.#answers.get(agentId);
    if ((this.#ended.get(agentId) ?? 0) > seq || (known && known.base.seq > seq)) return true;
    if (part.kind === "whole") return this.#takeWhole(part);
    const isNew = known?.base.seq !== seq;
    const answer = isNew ? opened({ ...part, kind: "whole", text: "", reasoning: "" }) : known;
    this.#answers.set(agentId, answer);
    const given = answer[part.kind];
    if (part.offset > given.length) answer.isTorn = true;
    else if (part.offset + part.text.length > given.length && given.length < MOST_CHARACTERS) {
      answer[part.kind] = given + part.text.slice(given.length - part.offset);
    }
    return !answer.isTorn;
  }

  #takeWhole(part: Said): true {
    const known = this.#answers.get(part.agentId);
    const isLonger = known?.base.seq !== part.seq || part.text.length >= known.text.length || known.isTorn;
    if (isLonger) this.#answers.set(part.agentId, opened(part));
    return true;
  }

  /** Records an entry that is sent to readers; it may end an answer or a tool call. */
  note(agentId: string, entry: FeedEntry): void {
    if (entry.type === "model.responded" || entry.type === "model.failed" || entry.type === "turn.ended") {
      const open = this.#answers.get(agentId);
      if (open && open.base.seq < entry.seq) this.#answers.delete(agentId);
      this.#ended.set(agentId, Math.max(entry.seq, this.#ended.get(agentId) ?? 0));
    } else if (entry.type === "tool.settled") this.#progress.delete(entry.callId);
  }

  get isEmpty(): boolean {
    return this.#answers.size === 0 && this.#progress.size === 0;
  }

  /** The events to send to a reader that has all rows up to `cursor`. Updates `given`. */
  *lackedBy(given: Given, cursor: number): Generator<LiveEvent> {
    for (const name of given.keys()) if (!this.#answers.has(name) && !this.#progress.has(name)) given.delete(name);
    for (const [agentId, answer] of this.#answers) {
      if (answer.isTorn || rowOf(answer.base) > cursor) continue;
      yield* restOf(answer, agentId, given);
    }
    for (const [callId, part] of this.#progress) {
      if (rowOf(part) > cursor || given.get(callId)?.seq === part.at) continue;
      given.set(callId, { seq: part.at, text: 0, reasoning: 0 });
      yield eventOfPart(part, null) as LiveEvent;
    }
  }
}

function opened(base: Said): OpenAnswer {
  return {
    base: { ...base, text: "", reasoning: "" },
    text: base.text,
    reasoning: base.reasoning ?? "",
    isTorn: false,
  };
}

/** The cursor of the row that must be sent to a reader before the part. */
function rowOf({ cursor }: LivePart): number {
  return parseCursor(cursor)?.row ?? 0;
}

function* restOf({ base, text, reasoning }: OpenAnswer, agentId: string, given: Given): Generator<LiveEvent> {
  const before = given.get(agentId);
  const { seq } = base;
  const isKnown = before?.seq === seq && before.text <= text.length && before.reasoning <= reasoning.length;
  if (isKnown && before.text === text.length && before.reasoning === reasoning.length) return;
  given.set(agentId, { seq, text: text.length, reasoning: reasoning.length });
  if (!isKnown) {
    yield eventOfPart({ ...base, text, reasoning }, null) as LiveEvent;
    return;
  }
  const { kind: _whole, text: _text, reasoning: _reasoning, ...said } = base;
  for (const [kind, all] of [
    ["text", text],
    ["reasoning", reasoning],
  ] as const) {
    const offset = before[kind];
    if (offset === all.length) continue;
    yield eventOfPart({ kind, ...said, offset, text: all.slice(offset) }, null) as LiveEvent;
  }
}

import { eventOfPart, type LivePart } from "../../runtime/index.ts";
import { parseCursor } from "../../state/index.ts";
import type { FeedEntry, LiveEvent } from "./messages.ts";

type Said = Extract<LivePart, { readonly kind: "whole" }>;
type Piece = Extract<LivePart, { readonly seq: number }>;
type Progress = Extract<LivePart, { readonly kind: "progress" }>;

type WrittenCall = NonNullable<Said["calls"]>[number];

/** An answer that a model is writing, with all pieces received so far. */
interface OpenAnswer {
  readonly base: Said;
  text: string;
  reasoning: string;
  readonly calls: Map<number, WrittenCall>;
  /** True while a piece is missing. Readers get nothing more until the whole answer is received. */
  isTorn: boolean;
}

/** Most characters kept of one answer and of one tool update. Readers get longer texts once they are committed. */
const MOST_CHARACTERS = 400_000;
const MOST_OF_UPDATE = 20_000;
/** Most calls kept of one answer. */
const MOST_CALLS = 100;

/** How much of each open answer and of each tool's progress was sent to one reader. */
export type Given = Map<string, GivenAnswer>;

interface GivenAnswer {
  readonly seq: number;
  readonly text: number;
  readonly reasoning: number;
  /** By index, the characters of a call's arguments. */
  readonly calls: ReadonlyMap<number, number>;
}

const noCalls: ReadonlyMap<number, number> = new Map();

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
    // The inspector shows the text of an answer, not its value, and makes forecasts itself.
    if (part.kind === "warning" || part.kind === "forecast" || part.kind === "output") return true;
    if (part.kind === "progress") {
      if (JSON.stringify(part.update).length <= MOST_OF_UPDATE) this.#progress.set(part.callId, part);
      return true;
    }
    const { agentId, seq } = part;
    const known = this.#answers.get(agentId);
    if ((this.#ended.get(agentId) ?? 0) > seq || (known && known.base.seq > seq)) return true;
    if (part.kind === "whole") return this.#takeWhole(part);
    const isNew = known?.base.seq !== seq;
    const answer = isNew ? opened({ ...saidOf(part), kind: "whole", text: "", reasoning: "" }) : known;
    this.#answers.set(agentId, answer);
    const call = part.kind === "call" ? answer.calls.get(part.index) : undefined;
    if (part.kind === "call" && call === undefined && answer.calls.size >= MOST_CALLS) return !answer.isTorn;
    const given = part.kind === "call" ? (call?.text ?? "") : answer[part.kind];
    if (part.offset > given.length) answer.isTorn = true;
    else {
      const isNews = part.offset + part.text.length > given.length && given.length < MOST_CHARACTERS;
      const text = isNews ? given + part.text.slice(given.length - part.offset) : given;
      if (part.kind !== "call") answer[part.kind] = text;
      else answer.calls.set(part.index, { callId: part.callId, name: part.name, index: part.index, text });
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
      given.set(callId, { seq: part.at, text: 0, reasoning: 0, calls: noCalls });
      yield eventOfPart(part, null) as LiveEvent;
    }
  }
}

function opened(base: Said): OpenAnswer {
  return {
    base: { ...base, text: "", reasoning: "", calls: undefined },
    text: base.text,
    reasoning: base.reasoning ?? "",
    calls: new Map((base.calls ?? []).slice(0, MOST_CALLS).map((call) => [call.index, call])),
    isTorn: false,
  };
}

/** The cursor of the row that must be sent to a reader before the part. */
function rowOf({ cursor }: LivePart): number {
  return parseCursor(cursor)?.row ?? 0;
}

function saidOf({
  agentId,
  agentName,
  parentAgentId,
  rootAgentId,
  sessionId,
  turnId,
  step,
  attempt,
  at,
  cursor,
  seq,
}: Piece) {
  return { agentId, agentName, parentAgentId, rootAgentId, sessionId, turnId, step, attempt, at, cursor, seq };
}

function* restOf({ base, text, reasoning, calls }: OpenAnswer, agentId: string, given: Given): Generator<LiveEvent> {
  const before = given.get(agentId);
  const { seq } = base;
  const isKnown = before?.seq === seq && before.text <= text.length && before.reasoning <= reasoning.length;
  const lengths = new Map([...calls].map(([index, call]) => [index, call.text.length]));
  given.set(agentId, { seq, text: text.length, reasoning: reasoning.length, calls: lengths });
  if (!isKnown) {
    yield eventOfPart({ ...base, text, reasoning, calls: [...calls.values()] }, null) as LiveEvent;
    return;
  }
  const said = saidOf(base);
  for (const [kind, all] of [
    ["text", text],
    ["reasoning", reasoning],
  ] as const) {
    const offset = before[kind];
    if (offset === all.length) continue;
    yield eventOfPart({ kind, ...said, offset, text: all.slice(offset) }, null) as LiveEvent;
  }
  for (const call of calls.values()) {
    const offset = before.calls.get(call.index);
    if (offset === call.text.length) continue;
    const rest = call.text.slice(offset ?? 0);
    yield eventOfPart({ kind: "call", ...said, ...call, offset: offset ?? 0, text: rest }, null) as LiveEvent;
  }
}

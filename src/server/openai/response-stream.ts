import type { TroupeEvent } from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import type { SseFrame } from "../core/sse.ts";
import { eventsUntilRest, storedTurnEvents, turnEvents } from "../core/turn-events.ts";
import type { TurnPart } from "./response-ids.ts";
import { type ResponseEvent, type ResponseStatus, responseObject } from "./response-object.ts";
import { beginningOf, bodyOf, isSame, storedOf, type TurnNow } from "./response-reading.ts";
import { ResponseTranslation } from "./response-translation.ts";

export interface ResponseStreamOptions {
  /** The number of the last event that the client has. Default: it has none. */
  readonly startingAfter?: number | undefined;
  readonly signal: AbortSignal;
}

/**
 * The frames of a response until it is finished. They come from the journal and from what is being written, in any process.
 * Ends without a last event when the reader has left.
 */
export async function* responseFrames(
  caller: Caller,
  part: TurnPart,
  { startingAfter = -1, signal }: ResponseStreamOptions,
): AsyncGenerator<SseFrame> {
  for await (const event of responseEvents(caller, part, signal)) {
    const news = newsOf(event, startingAfter);
    if (news !== undefined) yield { event: news.type, data: JSON.stringify(news) };
  }
}

/**
 * What of an event comes after a number; a piece of a text has one for each of its characters. A text that was being
 * written when its turn was aborted is not stored, so a client that saw it may be beyond the number of the last event: it is
 * told that all the same.
 */
function newsOf(event: ResponseEvent, startingAfter: number): ResponseEvent | undefined {
  const { sequence_number: last, type, delta } = event;
  if (last < startingAfter && isLastEvent(type)) return { ...event, sequence_number: startingAfter + 1 };
  if (last <= startingAfter) return undefined;
  if (typeof delta !== "string" || !type.endsWith("_text.delta")) return event;
  const known = startingAfter - (last - delta.length);
  return known <= 0 ? event : { ...event, delta: delta.slice(known) };
}

async function* responseEvents(caller: Caller, part: TurnPart, signal: AbortSignal): AsyncGenerator<ResponseEvent> {
  const { head, from, answersWhole } = await beginningOf(caller, part);
  const translation = new ResponseTranslation({ ...part, answersWhole });
  const begun = responseObject(head, { status: "in_progress", output: [], usage: null });
  yield* translation.tell("response.created", begun);
  yield* translation.tell("response.in_progress", begun);
  const reader = new PartReader(caller, part, { translation, from, signal });
  const now = yield* reader.events();
  if (now === undefined) return;
  yield* translation.end();
  const body = bodyOf(translation, now);
  yield* translation.tell(lastEvent(body.status), responseObject(head, body));
}

function isLastEvent(type: string): boolean {
  return type === "response.completed" || type === "response.incomplete" || type === "response.failed";
}

function lastEvent(status: ResponseStatus): string {
  if (status === "failed") return "response.failed";
  // The protocol has no event of its own for a cancelled response.
  return status === "incomplete" || status === "cancelled" ? "response.incomplete" : "response.completed";
}

interface Reading {
  readonly translation: ResponseTranslation;
  /** The place in the tree's journal to begin after. */
  readonly from: string;
  readonly signal: AbortSignal;
}

/** Reads the events of a response from its beginning to where it is finished, and follows them there. */
class PartReader {
  readonly #caller: Caller;
  readonly #part: TurnPart;
  readonly #translation: ResponseTranslation;
  readonly #signal: AbortSignal;
  /** Cursor of the last event that was read. */
  #last: string;

  constructor(caller: Caller, part: TurnPart, { translation, from, signal }: Reading) {
    this.#caller = caller;
    this.#part = part;
    this.#translation = translation;
    this.#signal = signal;
    this.#last = from;
  }

  /** Returns the turn where the response is finished, or `undefined` when the reader has left. */
  async *events(): AsyncGenerator<ResponseEvent, TurnNow | undefined> {
    const { turn } = this.#part;
    for (let now = await turn.current(); ; now = await turn.current()) {
      const isPaused = now.status === "waiting" && now.reason === "paused";
      if (isFinished(now)) {
        yield* this.#taken(await storedTurnEvents(this.#caller, this.#part, this.#last));
        // It may go on by a decision that was made elsewhere.
        if (isSame(now, await turn.current())) return now;
      } else if (isPaused) {
        yield* this.#taken(this.#next());
      } else {
        const reading = { from: this.#last, signal: this.#signal };
        yield* this.#taken(eventsUntilRest(this.#caller, this.#part, reading));
      }
      if (this.#translation.isContinued) return now;
      if (this.#signal.aborted) return undefined;
    }
  }

  /** What comes next, when a paused turn goes on. */
  async *#next(): AsyncGenerator<TroupeEvent> {
    const reading = { after: this.#last, signal: this.#signal };
    for await (const event of turnEvents(this.#caller, this.#part, reading)) {
      yield event;
      return;
    }
  }

  async *#taken(events: AsyncIterable<TroupeEvent> | readonly TroupeEvent[]): AsyncGenerator<ResponseEvent, void> {
    for await (const event of events) {
      this.#last = event.cursor ?? this.#last;
      yield* this.#translation.take(event, await storedOf(this.#caller, event));
      if (this.#translation.isContinued) return;
    }
  }
}

/** Whether a response that ends with the turn as it is now is finished. */
function isFinished(now: TurnNow): boolean {
  return "stopReason" in now || (now.status === "waiting" && now.reason === "request");
}

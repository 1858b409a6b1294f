import type { TroupeEvent } from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import type { SseFrame } from "../core/sse.ts";
import { eventsUntilRest, storedTurnEvents, turnEvents } from "../core/turn-events.ts";
import type { TurnPart } from "./response-ids.ts";
import { type ResponseEvent, type ResponseStatus, responseObject } from "./response-object.ts";
import { beginningOf, bodyOf, isSame, storedOf, type TurnNow } from "./response-reading.ts";
import { ResponseTranslation } from "./response-translation.ts";

export interface ResponseStreamOptions {
  /** The sequence number of the last event that the client received. Default: none. */
  readonly startingAfter?: number | undefined;
  readonly signal: AbortSignal;
}

/**
 * The frames of a response until it has finished, in any process. They come from the journal and from live events. If
 * the reader leaves, the stream ends without a last event.
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
 * The rest of an event after a sequence number; a text delta has one number for each character. Text of an aborted step
 * is not stored, so a client that received it may already be past the number of the last event; it is sent that event
 * anyway.
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
  // The protocol has no event for a cancelled response.
  return status === "incomplete" || status === "cancelled" ? "response.incomplete" : "response.completed";
}

interface Reading {
  readonly translation: ResponseTranslation;
  /** The cursor in the tree's journal to start after. */
  readonly from: string;
  readonly signal: AbortSignal;
}

/** Reads the events of a response from its start, and follows them until it has finished. */
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

  /** Returns the turn once the response has finished, or `undefined` when the reader has left. */
  async *events(): AsyncGenerator<ResponseEvent, TurnNow | undefined> {
    const { turn } = this.#part;
    for (let now = await turn.current(); ; now = await turn.current()) {
      const isPaused = now.status === "waiting" && now.reason === "paused";
      if (isFinished(now)) {
        yield* this.#taken(await storedTurnEvents(this.#caller, this.#part, this.#last));
        // A decision by another client may continue the turn.
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

  /** Waits for the first event after a paused turn has resumed. */
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

/** Whether a response that ends with the turn in this state has finished. */
function isFinished(now: TurnNow): boolean {
  return "stopReason" in now || (now.status === "waiting" && now.reason === "request");
}

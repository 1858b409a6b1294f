import { type EventCursor, parseCursor, type TroupeEvent } from "../../state/index.ts";

/**
 * Hands events on, the durable ones in order and each once, whatever way they come: those of the past from the journal,
 * those of now from the runtime, and at the end from the journal again, should one have been missed.
 */
export class EventFeed {
  readonly #listener: (event: TroupeEvent) => void;
  #last: EventCursor | undefined;

  constructor(listener: (event: TroupeEvent) => void) {
    this.#listener = listener;
  }

  /** Events that somebody else has shown already. */
  skip(events: readonly TroupeEvent[]): void {
    for (const event of events) this.#isNew(event);
  }

  push(event: TroupeEvent): void {
    if (this.#isNew(event)) this.#listener(event);
  }

  #isNew({ cursor }: TroupeEvent): boolean {
    if (cursor === null) return true;
    const place = parseCursor(cursor);
    if (place === undefined) return true;
    if (this.#last !== undefined && compare(place, this.#last) <= 0) return false;
    this.#last = place;
    return true;
  }
}

function compare(left: EventCursor, right: EventCursor): number {
  return left.row - right.row || left.seq - right.seq || left.index - right.index;
}

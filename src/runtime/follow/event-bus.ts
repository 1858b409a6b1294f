import type { Account } from "../../budget/index.ts";
import {
  cursorText,
  type Entry,
  type EventSource,
  eventsOf,
  type TextLookup,
  type TroupeEvent,
} from "../../state/index.ts";
import type { Committed } from "../../stores/index.ts";
import { eventOfPart, type LivePart, noCursor } from "./live-part.ts";

export type EventListener = (event: TroupeEvent) => void;
export type AccountListener = (accounts: readonly Account[]) => void;
export type LiveListener = (part: LivePart) => void;
export type RowListener = (row: CommittedRow) => void;

/** A row of the journal that this process has just committed. */
export interface CommittedRow {
  readonly cursor: number;
  readonly source: EventSource;
  readonly entries: readonly Entry[];
  /** The public events of the entries. */
  readonly events: readonly TroupeEvent[];
  readonly textOf: TextLookup;
}

/** Carries rows, events and live parts from the trees of this process to listeners; builds none without listeners. */
export class EventBus {
  readonly #everywhere = new Set<EventListener>();
  readonly #accounts = new Set<AccountListener>();
  readonly #rows = new Map<string, Set<RowListener>>();
  readonly #live = new Map<string, Set<LiveListener>>();
  /** The last entry that each live agent has committed, with its row. */
  readonly #last = new WeakMap<EventSource, { readonly row: number; readonly entry: Entry }>();

  /** Listens to the events of all trees. The returned function removes the listener. */
  listen(listener: EventListener): () => void {
    this.#everywhere.add(listener);
    return () => this.#everywhere.delete(listener);
  }

  /** Listens to the rows of one tree, as they are committed. */
  listenToRows(listener: RowListener, rootAgentId: string): () => void {
    return addTo(this.#rows, rootAgentId, listener);
  }

  /** Listens to the live parts of one tree, which are shown and never stored. */
  listenLive(listener: LiveListener, rootAgentId: string): () => void {
    return addTo(this.#live, rootAgentId, listener);
  }

  /** Listens to accounts of all trees, as commits of this process change them. */
  listenToAccounts(listener: AccountListener): void {
    this.#accounts.add(listener);
  }

  hasListeners(rootAgentId: string): boolean {
    return this.#everywhere.size > 0 || this.#rows.has(rootAgentId) || this.#live.has(rootAgentId);
  }

  /** The cursor of the last event that a live agent has committed. */
  cursorOf(source: EventSource): string {
    const last = this.#last.get(source);
    if (!last) return noCursor;
    const { row, entry } = last;
    const end = cursorText({ row, seq: entry.seq, index: 0 });
    return eventsOf(entry, source, row, () => "").at(-1)?.cursor ?? end;
  }

  publishCommitted({ entries, cursor, accounts }: Committed, source: EventSource, textOf: TextLookup): void {
    if (accounts?.length) for (const listener of this.#accounts) listener(accounts);
    const last = entries.at(-1);
    if (last) this.#last.set(source, { row: cursor, entry: last });
    if (!last || !this.hasListeners(source.rootAgentId)) return;
    const events = entries.flatMap((entry) => eventsOf(entry, source, cursor, textOf));
    for (const event of events) for (const listener of this.#everywhere) listener(event);
    const row = { cursor, source, entries, events, textOf };
    for (const listener of this.#rows.get(source.rootAgentId) ?? []) listener(row);
  }

  publishLive(part: LivePart): void {
    for (const listener of this.#live.get(part.rootAgentId) ?? []) listener(part);
    if (this.#everywhere.size === 0) return;
    const event = eventOfPart(part, part.cursor);
    for (const listener of this.#everywhere) listener(event);
  }
}

function addTo<Listener>(map: Map<string, Set<Listener>>, key: string, listener: Listener): () => void {
  const listeners = map.get(key) ?? new Set();
  map.set(key, listeners.add(listener));
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0 && map.get(key) === listeners) map.delete(key);
  };
}

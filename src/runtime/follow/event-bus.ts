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

/** Carries public events from the trees of this process to whoever listens; makes none where nobody does. */
export class EventBus {
  readonly #everywhere = new Set<EventListener>();
  readonly #accountants = new Set<AccountListener>();
  readonly #byRoot = new Map<string, Set<EventListener>>();
  readonly #live = new Map<string, Set<LiveListener>>();
  /** The last entry that each live agent has committed, with its row. */
  readonly #last = new WeakMap<EventSource, { readonly row: number; readonly entry: Entry }>();

  /** Without a root: all trees. The returned function ends it. */
  listen(listener: EventListener, rootAgentId?: string): () => void {
    if (rootAgentId !== undefined) return addTo(this.#byRoot, rootAgentId, listener);
    this.#everywhere.add(listener);
    return () => this.#everywhere.delete(listener);
  }

  /** What is said in a tree and is not stored, piece by piece. */
  listenLive(listener: LiveListener, rootAgentId: string): () => void {
    return addTo(this.#live, rootAgentId, listener);
  }

  /** Accounts of all trees as commits of this process change them. */
  listenToAccounts(listener: AccountListener): void {
    this.#accountants.add(listener);
  }

  hasListeners(rootAgentId: string): boolean {
    return this.#everywhere.size > 0 || this.#byRoot.has(rootAgentId) || this.#live.has(rootAgentId);
  }

  /** Up to where the journal of a live agent is committed, as a place among the tree's events. */
  cursorOf(source: EventSource): string {
    const last = this.#last.get(source);
    if (!last) return noCursor;
    const { row, entry } = last;
    const end = cursorText({ row, seq: entry.seq, index: 0 });
    return eventsOf(entry, source, row, () => "").at(-1)?.cursor ?? end;
  }

  publishCommitted({ entries, cursor, accounts }: Committed, source: EventSource, textOf: TextLookup): void {
    if (accounts?.length) for (const listener of this.#accountants) listener(accounts);
    const entry = entries.at(-1);
    if (entry) this.#last.set(source, { row: cursor, entry });
    if (!this.hasListeners(source.rootAgentId)) return;
    for (const one of entries) {
      for (const event of eventsOf(one, source, cursor, textOf)) this.#publish(event);
    }
  }

  publishLive(part: LivePart): void {
    for (const listener of this.#live.get(part.rootAgentId) ?? []) listener(part);
    if (this.#everywhere.size > 0 || this.#byRoot.has(part.rootAgentId)) this.#publish(eventOfPart(part, part.cursor));
  }

  #publish(event: TroupeEvent): void {
    for (const listener of this.#everywhere) listener(event);
    for (const listener of this.#byRoot.get(event.rootAgentId) ?? []) listener(event);
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

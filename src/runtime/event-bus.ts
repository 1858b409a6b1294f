import type { Account } from "../budget/index.ts";
import { type EventSource, eventsOf, type TextLookup, type TroupeEvent, type TroupeEventBody } from "../state/index.ts";

import type { Committed } from "../stores/index.ts";

export type EventListener = (event: TroupeEvent) => void;
export type AccountListener = (accounts: readonly Account[]) => void;

/** Carries public events from the trees of this process to whoever listens; makes none where nobody does. */
export class EventBus {
  readonly #everywhere = new Set<EventListener>();
  readonly #accountants = new Set<AccountListener>();
  readonly #byRoot = new Map<string, Set<EventListener>>();

  /** Without a root: all trees. The returned function ends it. */
  listen(listener: EventListener, rootAgentId?: string): () => void {
    if (rootAgentId === undefined) {
      this.#everywhere.add(listener);
      return () => this.#everywhere.delete(listener);
    }
    const listeners = this.#byRoot.get(rootAgentId) ?? new Set();
    this.#byRoot.set(rootAgentId, listeners);
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#byRoot.delete(rootAgentId);
    };
  }

  /** Accounts of all trees as commits of this process change them. */
  listenToAccounts(listener: AccountListener): void {
    this.#accountants.add(listener);
  }

  hasListeners(rootAgentId: string): boolean {
    return this.#everywhere.size > 0 || this.#byRoot.has(rootAgentId);
  }

  publishCommitted({ entries, cursor, accounts }: Committed, source: EventSource, textOf: TextLookup): void {
    if (accounts?.length) for (const listener of this.#accountants) listener(accounts);
    if (!this.hasListeners(source.rootAgentId)) return;
    for (const entry of entries) {
      for (const event of eventsOf(entry, source, cursor, textOf)) this.#publish(event);
    }
  }

  publishEphemeral(
    body: TroupeEventBody,
    source: EventSource,
    place: { turnId: string; step: number; at: number },
  ): void {
    if (!this.hasListeners(source.rootAgentId)) return;
    const { agentId, parentAgentId, rootAgentId, sessionId, definition } = source;
    const who = { agentId, agentName: definition.name, parentAgentId, rootAgentId, sessionId };
    this.#publish({ ...body, ...who, ...place, cursor: null });
  }

  #publish(event: TroupeEvent): void {
    for (const listener of this.#everywhere) listener(event);
    for (const listener of this.#byRoot.get(event.rootAgentId) ?? []) listener(event);
  }
}

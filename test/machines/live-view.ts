import type { AnyActorRef, InspectionEvent } from "xstate";
import type { Entry } from "../../src/state/index.ts";
import { treeView } from "./recorded.ts";

export type TreeView = ReturnType<typeof treeView>;

/**
 * The state of every agent's live machines before each entry. An inspection event comes before its transition, so the first
 * one with an entry sees the machines as all earlier entries left them.
 */
export class LiveViews {
  readonly #roots = new Map<string, AnyActorRef>();
  readonly #views = new Map<string, Map<number, TreeView>>();
  readonly #seen = new WeakSet<object>();

  readonly onInspect = (agentId: string, event: InspectionEvent): void => {
    if (event.type === "@xstate.actor" && event.actorRef.sessionId === event.rootId) {
      this.#roots.set(agentId, event.actorRef as AnyActorRef);
    }
    if (event.type !== "@xstate.event") return;
    const { seq } = event.event as unknown as Partial<Entry>;
    const root = this.#roots.get(agentId);
    if (seq === undefined || !root || root.sessionId !== event.rootId) return;
    const views = this.#views.get(agentId) ?? new Map<number, TreeView>();
    this.#views.set(agentId, views);
    if (!this.#seen.has(event.event)) views.set(seq, treeView(root));
    this.#seen.add(event.event);
  };

  /** The view before the entry with this seq arrived; `undefined` if no machine handles that entry. */
  before(agentId: string, seq: number): TreeView | undefined {
    return this.#views.get(agentId)?.get(seq);
  }

  now(agentId: string): TreeView | undefined {
    const root = this.#roots.get(agentId);
    return root && treeView(root);
  }
}

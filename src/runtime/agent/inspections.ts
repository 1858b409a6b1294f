import type { ActorRefLike, AnyActorRef, InspectionEvent, Subscription } from "xstate";
import { deepFreeze, harmless } from "../../base/index.ts";

/** Called with the id of an agent and an inspection event of its machines. */
export type InspectionObserver = (agentId: string, event: InspectionEvent) => void;

/**
 * The observers of the machines of all live agents.
 * Owns: the observers, and which root actors are live. Does not own: the actors.
 *
 * Invariants
 * 1. Without observers this class listens to no actor system.
 * 2. An observer receives an event for each actor that exists when it is added, parents first, with its state if it was started,
 *    and all events from then on.
 */
export class Inspections {
  readonly #observers = new Set<InspectionObserver>();
  /** By root actor: the subscription to its system. */
  readonly #live = new Map<AnyActorRef, Subscription | undefined>();

  /** Returns a function that removes the observer. An error of the observer becomes a process warning. */
  add(given: InspectionObserver): () => void {
    const observer = harmless("onInspect", (agentId: string, event: InspectionEvent) => {
      // The machines keep using these objects.
      if ("snapshot" in event && "context" in event.snapshot) deepFreeze(event.snapshot.context);
      given(agentId, event);
    });
    this.#observers.add(observer);
    for (const root of this.#live.keys()) {
      this.#listenTo(root);
      present(root, (event) => observer(root.id, event), true);
    }
    return () => {
      this.#observers.delete(observer);
      if (this.#observers.size === 0) for (const root of this.#live.keys()) this.#leave(root);
    };
  }

  /** Must be called before the root actor is started. */
  begin(root: AnyActorRef): void {
    this.#live.set(root, undefined);
    if (this.#observers.size === 0) return;
    this.#listenTo(root);
    present(root, (event) => this.#tell(root.id, event), false);
  }

  end(root: AnyActorRef): void {
    this.#leave(root);
    this.#live.delete(root);
  }

  #listenTo(root: AnyActorRef): void {
    if (this.#live.get(root)) return;
    this.#live.set(
      root,
      root.system.inspect((event: InspectionEvent) => this.#tell(root.id, event)),
    );
  }

  #leave(root: AnyActorRef): void {
    this.#live.get(root)?.unsubscribe();
    this.#live.set(root, undefined);
  }

  #tell(agentId: string, event: InspectionEvent): void {
    for (const observer of this.#observers) observer(agentId, event);
  }
}

/** The inspection events of XState for an actor and the actors below it; `isStarted`: with their states. */
function present(root: AnyActorRef, tell: (event: InspectionEvent) => void, isStarted: boolean): void {
  const { sessionId: rootId } = root;
  const presentOne = (actorRef: AnyActorRef): void => {
    const snapshot = actorRef.getSnapshot() as { readonly children?: Readonly<Record<string, ActorRefLike>> };
    tell({ type: "@xstate.actor", rootId, actorRef });
    if (isStarted) {
      tell({
        type: "@xstate.snapshot",
        rootId,
        actorRef,
        event: { type: "xstate.init" },
        snapshot: actorRef.getSnapshot(),
      });
    }
    for (const child of Object.values(snapshot.children ?? {})) presentOne(child as AnyActorRef);
  };
  presentOne(root);
}

import type { AnyActorRef, InspectionEvent } from "xstate";
import { functionRule, optionsOf, systemClock, wholeNumberRule } from "../../base/index.ts";
import { partsOfCall, rootOf } from "../../state/index.ts";
import { type ActorFrame, FRAME_VERSION, type InspectionFrame } from "./frames.ts";
import { chartOf, type MachineName, sourceOf, visibleEvent, visibleSnapshot } from "./visible.ts";

/** Options of `createInspector()`. */
export interface InspectorOptions {
  /** Milliseconds since the epoch. Default: the system's clock. */
  readonly now?: (() => number) | undefined;
  /** Number of ended agents and turns that stay visible. Default 200. */
  readonly keptEnded?: number | undefined;
}

export type FrameListener = (frame: InspectionFrame) => void;

/** Which actor a frame is about. */
export type FramedActor = Pick<ActorFrame, "sessionId" | "rootId">;

/** Turns XState's inspection events of all live agents into frames, and keeps their current states. */
export interface Inspector {
  /** For `runtime.inspect()`, or `createRuntime({ onInspect })`. */
  readonly onInspect: (agentId: string, event: InspectionEvent) => void;
  /** One frame per current actor with its state, parents first, for a client that connects later. */
  frames(): ActorFrame[];
  /**
   * Calls `listener` with every new frame of the actors for which `wants` returns true, by default all. No other frame is
   * built. The returned function ends the subscription.
   */
  subscribe(listener: FrameListener, wants?: (actor: Pick<ActorFrame, "sessionId" | "rootId">) => boolean): () => void;
}

/**
 * Collects the frames of Stately's protocol. Pass `onInspect` to `runtime.inspect()` and the result to `serveInspector()`.
 */
export function createInspector(options?: InspectorOptions): Inspector {
  return new InspectionHub(optionsOf<InspectorOptions>(options, "createInspector()", { rules: inspectorRules }));
}

export const inspectorRules = { now: functionRule, keptEnded: wholeNumberRule(0) } as const;

/** Most parent links to keep, because another process may run the child. */
const mostParents = 10_000;

interface Node extends FramedActor {
  readonly machine: MachineName;
  parentId: string | undefined;
  /** The machine's snapshot while the actor is live. A frame is built from it only on demand. */
  snapshot: unknown;
  /** The list of open children that was last linked. */
  adopted: unknown;
}

/**
 * Owns: the known actors, their parents and current snapshots. Does not own: the actors, the clients.
 *
 * Invariants
 * 1. The id of an actor is the id of its agent, turn or call, so it stays the same after a restart.
 * 2. The hub emits only values that `visible.ts` allows.
 * 3. The number of ended actors is bounded. All live actors of the runtime are kept.
 * 4. Without listeners, an event builds no frame and costs the same for any number of actors and children.
 */
class InspectionHub implements Inspector {
  readonly #now: () => number;
  readonly #keptEnded: number;
  readonly #nodes = new Map<string, Node>();
  readonly #ended = new Set<string>();
  /** Parents by child. A child may be known before it is live in this process. */
  readonly #parents = new Map<string, string>();
  readonly #listeners = new Map<FrameListener, (actor: FramedActor) => boolean>();
  #count = 0;

  constructor({ now, keptEnded }: InspectorOptions) {
    this.#now = now ?? (() => systemClock.now());
    this.#keptEnded = keptEnded ?? 200;
  }

  readonly onInspect = (agentId: string, event: InspectionEvent): void => {
    try {
      if (event.type === "@xstate.actor") this.#register(agentId, event.actorRef as AnyActorRef);
      else if (event.type === "@xstate.event") this.#noteEvent(agentId, event);
      else if (event.type === "@xstate.snapshot") this.#noteSnapshot(event);
    } catch (error) {
      // Runs during a transition of the machine, which an error of the inspector must not break.
      process.emitWarning(`an inspection event could not be shown: ${String(error)}`);
    }
  };

  frames(): ActorFrame[] {
    const sorted: Node[] = [];
    const seen = new Set<string>();
    const add = (node: Node): void => {
      if (seen.has(node.sessionId)) return;
      seen.add(node.sessionId);
      const parent = node.parentId === undefined ? undefined : this.#nodes.get(node.parentId);
      if (parent) add(parent);
      sorted.push(node);
    };
    for (const node of this.#nodes.values()) this.#adopt(node);
    for (const node of this.#nodes.values()) add(node);
    return sorted.map((node) => this.#actorFrame(node));
  }

  subscribe(listener: FrameListener, wants: (actor: FramedActor) => boolean = () => true): () => void {
    this.#listeners.set(listener, wants);
    return () => this.#listeners.delete(listener);
  }

  #register(agentId: string, { id, src }: AnyActorRef): void {
    const machine = src === "turn" || src === "toolCall" ? src : "agent";
    const parentId = { agent: this.#parents.get(agentId), turn: agentId, toolCall: partsOfCall(id).turnId }[machine];
    const snapshot = { status: "active" };
    const node: Node = { sessionId: id, rootId: rootOf(agentId), machine, parentId, snapshot, adopted: undefined };
    this.#ended.delete(id);
    this.#nodes.set(id, node);
    this.#publish(node, () => this.#actorFrame(node));
  }

  #noteEvent(agentId: string, { actorRef, event }: InspectionEvent & { type: "@xstate.event" }): void {
    if (event.type === "child.spawned") {
      const { childId } = event as { readonly childId?: unknown };
      if (typeof childId === "string") this.#link(childId, agentId);
    }
    const node = this.#listeners.size === 0 ? undefined : this.#nodes.get((actorRef as AnyActorRef).id);
    if (!node) return;
    this.#publish(node, () => ({
      type: "@xstate.event",
      ...this.#base(node),
      event: visibleEvent(event),
      sourceId: sourceOf(event),
      provisional: true,
    }));
  }

  #noteSnapshot({ actorRef, event, snapshot }: InspectionEvent & { type: "@xstate.snapshot" }): void {
    const node = this.#nodes.get((actorRef as AnyActorRef).id);
    if (!node) return;
    node.snapshot = snapshot;
    if (this.#listeners.size > 0) {
      this.#adopt(node);
      this.#publish(node, () => ({
        type: "@xstate.snapshot",
        ...this.#base(node),
        event: visibleEvent(event),
        snapshot: visibleSnapshot(snapshot),
        provisional: true,
      }));
    }
    if (snapshot.status !== "active") this.#end(node);
  }

  /**
   * Every agent is a root actor for XState. The children of a restored parent are known only from its list of open
   * children.
   */
  #adopt(parent: Node): void {
    if (parent.machine !== "agent") return;
    const { openChildIds } = (parent.snapshot as { context?: { openChildIds?: readonly string[] } }).context ?? {};
    if (openChildIds === parent.adopted) return;
    parent.adopted = openChildIds;
    for (const childId of openChildIds ?? []) this.#link(childId, parent.sessionId);
  }

  #link(childId: string, parentId: string): void {
    if (this.#parents.get(childId) === parentId) return;
    this.#parents.set(childId, parentId);
    if (this.#parents.size > mostParents) this.#parents.delete(this.#parents.keys().next().value ?? "");
    const child = this.#nodes.get(childId);
    if (!child || child.parentId === parentId) return;
    child.parentId = parentId;
    this.#publish(child, () => this.#actorFrame(child));
  }

  #end(node: Node): void {
    // The machine's own snapshot contains contents and children: keep only the visible fields.
    node.snapshot = visibleSnapshot(node.snapshot);
    this.#ended.add(node.sessionId);
    for (const sessionId of this.#ended) {
      if (this.#ended.size <= this.#keptEnded) break;
      this.#ended.delete(sessionId);
      this.#nodes.delete(sessionId);
      this.#parents.delete(sessionId);
    }
  }

  #actorFrame(node: Node): ActorFrame {
    const { sessionId: name, parentId, machine } = node;
    const snapshot = visibleSnapshot(node.snapshot);
    return { type: "@xstate.actor", ...this.#base(node), name, parentId, definition: chartOf(machine), snapshot };
  }

  #base({ sessionId, rootId }: FramedActor) {
    this.#count += 1;
    return { sessionId, rootId, createdAt: String(this.#now()), id: String(this.#count), _version: FRAME_VERSION };
  }

  /** The frame is built when the first listener wants it. */
  #publish(node: Node, build: () => InspectionFrame): void {
    let frame: InspectionFrame | undefined;
    for (const [listener, wants] of this.#listeners) if (wants(node)) listener((frame ??= build()));
  }
}

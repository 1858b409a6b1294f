import type { LiveAddress, LiveChannel } from "../../stores/index.ts";
import type { DevMessage, SessionMessage, Tree } from "./dev-messages.ts";

type AskListener = Parameters<LiveChannel["onAsked"]>[1];
type LiveListener = Parameters<LiveChannel["follow"]>[1];

function keyOf({ tenant, rootAgentId }: Tree): string {
  return `${tenant} ${rootAgentId}`;
}

/** The live channel of the process that runs the agents: its only reader is the inspector of `troupe dev`. */
export class SessionLiveChannel implements LiveChannel {
  readonly #send: (message: SessionMessage) => void;
  readonly #followed = new Map<string, Tree>();
  readonly #askListeners = new Set<AskListener>();

  constructor(send: (message: SessionMessage) => void, followed: readonly Tree[]) {
    this.#send = send;
    for (const tree of followed) this.#followed.set(keyOf(tree), tree);
  }

  isFollowed(tree: LiveAddress): boolean {
    return this.#followed.has(keyOf(tree));
  }

  send({ tenant, rootAgentId }: LiveAddress, message: string): void {
    if (this.#followed.has(keyOf({ tenant, rootAgentId })))
      this.#send({ type: "live", tree: { tenant, rootAgentId }, message });
  }

  /** No other process writes answers. */
  follow(): ReturnType<LiveChannel["follow"]> {
    return { ask: () => undefined, end: () => undefined };
  }

  onAsked(_processId: string, listener: AskListener): () => void {
    this.#askListeners.add(listener);
    return () => this.#askListeners.delete(listener);
  }

  take({ type, tree }: Extract<DevMessage, { readonly tree: Tree }>): void {
    if (type === "unfollow") this.#followed.delete(keyOf(tree));
    else this.#followed.set(keyOf(tree), tree);
    if (type === "unfollow") return;
    for (const listener of this.#askListeners) listener(tree.tenant, tree.rootAgentId);
  }
}

/** The live channel of the inspector: the writer is the process of the conversation, whichever it is at the time. */
export class InspectorLiveChannel implements LiveChannel {
  readonly #send: (message: DevMessage) => void;
  readonly #listeners = new Map<string, { readonly tree: Tree; readonly listeners: Set<LiveListener> }>();

  constructor(send: (message: DevMessage) => void) {
    this.#send = send;
  }

  /** The trees that a new process is told to send. */
  get followed(): readonly Tree[] {
    return [...this.#listeners.values()].map(({ tree }) => tree);
  }

  isFollowed(): boolean {
    return false;
  }

  /** The inspector writes no answers. */
  send(): void {}

  follow({ tenant, rootAgentId }: LiveAddress, listener: LiveListener): ReturnType<LiveChannel["follow"]> {
    const tree = { tenant, rootAgentId };
    const key = keyOf(tree);
    const { listeners } = this.#listeners.get(key) ?? { listeners: new Set<LiveListener>() };
    listeners.add(listener);
    this.#listeners.set(key, { tree, listeners });
    this.#send({ type: "follow", tree });
    return {
      ask: () => this.#send({ type: "ask", tree }),
      end: () => {
        listeners.delete(listener);
        if (listeners.size > 0) return;
        this.#listeners.delete(key);
        this.#send({ type: "unfollow", tree });
      },
    };
  }

  onAsked(): () => void {
    return () => undefined;
  }

  take(tree: Tree, message: string): void {
    for (const listener of this.#listeners.get(keyOf(tree))?.listeners ?? []) listener(message);
  }
}

export interface LivePlace {
  readonly tenant: string;
  readonly rootAgentId: string;
  /** The sender or follower; nobody receives its own messages. Contains no white space. */
  readonly processId: string;
}

/** A subscription to what others send about a tree. */
export interface LiveFollowing {
  /** Asks the others again what is open now, because a message was lost. */
  ask(): void;
  end(): void;
}

/**
 * Carries what is not stored, such as the text of an answer while it is being written, to other processes of these
 * stores.
 *
 * Invariants
 * 1. Nothing here waits, throws or holds up work: what cannot be sent now is dropped.
 * 2. Messages of one process about a tree arrive in order, each once or not at all.
 * 3. Messages are not kept anywhere.
 */
export interface LiveChannel {
  /** Whether another process follows the tree, as far as this process has heard. Sends nothing. */
  isFollowed(place: LivePlace): boolean;
  /** Sends to all other followers of the tree. */
  send(place: LivePlace, message: string): void;
  /**
   * Subscribes to what others send about a tree. Asks them what is open now as soon as it can hear them, and again
   * after each interruption.
   */
  follow(place: LivePlace, listener: (message: string) => void): LiveFollowing;
  /**
   * Called when another process asks what is open in a tree; answer with `send`. Returns a function that ends the
   * subscription.
   */
  onAsked(processId: string, listener: AskListener): () => void;
}

export type LiveListener = (message: string) => void;
export type AskListener = (tenant: string, rootAgentId: string) => void;

interface Follower {
  readonly processId: string;
  readonly listener: LiveListener;
}

/** A live channel among the users of one stores object in this process; it reaches no other process. */
export class InProcessLiveChannel implements LiveChannel {
  readonly #followers = new Map<string, Set<Follower>>();
  readonly #owners = new Set<{ readonly processId: string; readonly listener: AskListener }>();

  isFollowed(place: LivePlace): boolean {
    return this.#others(place).length > 0;
  }

  send(place: LivePlace, message: string): void {
    for (const { listener } of this.#others(place)) listener(message);
  }

  follow(place: LivePlace, listener: LiveListener): LiveFollowing {
    const text = treeText(place);
    const { processId, tenant, rootAgentId } = place;
    const followers = this.#followers.get(text) ?? new Set();
    const follower: Follower = { processId, listener };
    this.#followers.set(text, followers.add(follower));
    const ask = (): void => {
      for (const owner of this.#owners) if (owner.processId !== processId) owner.listener(tenant, rootAgentId);
    };
    ask();
    const end = (): void => {
      followers.delete(follower);
      if (followers.size === 0 && this.#followers.get(text) === followers) this.#followers.delete(text);
    };
    return { ask, end };
  }

  onAsked(processId: string, listener: AskListener): () => void {
    const owner = { processId, listener };
    this.#owners.add(owner);
    return () => {
      this.#owners.delete(owner);
    };
  }

  #others(place: LivePlace): Follower[] {
    return [...(this.#followers.get(treeText(place)) ?? [])].filter(({ processId }) => processId !== place.processId);
  }
}

function treeText({ tenant, rootAgentId }: LivePlace): string {
  return JSON.stringify([tenant, rootAgentId]);
}

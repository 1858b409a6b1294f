export interface LivePlace {
  readonly tenant: string;
  readonly rootAgentId: string;
  /** Who sends or follows. Nobody hears what it sends itself. Holds no white space. */
  readonly processId: string;
}

/** One who follows what others send about a tree. */
export interface LiveFollowing {
  /** Asks the others once more for what is open now: something of theirs was missed. */
  ask(): void;
  end(): void;
}

/**
 * What is not stored, such as the text of an answer that is being written, on its way to other processes of these stores.
 *
 * Invariants
 * 1. Nothing here waits, throws or stops anybody's work: what cannot be sent now is gone.
 * 2. What one process sends about a tree arrives in order, each message once or not at all.
 * 3. Nothing that is sent is kept anywhere.
 */
export interface LiveChannel {
  /** Whether another process follows the tree, as far as that has been heard of here. Asks nobody. */
  isFollowed(place: LivePlace): boolean;
  /** Sends to all others who follow the tree. */
  send(place: LivePlace, message: string): void;
  /**
   * Hears what others send about a tree. As soon as it can hear, and again whenever it could not for a while, it asks them
   * for what is open now.
   */
  follow(place: LivePlace, listener: (message: string) => void): LiveFollowing;
  /** Called when another process asks what is open in a tree; to be answered with `send`. The returned function ends it. */
  onAsked(processId: string, listener: AskListener): () => void;
}

export type LiveListener = (message: string) => void;
export type AskListener = (tenant: string, rootAgentId: string) => void;

interface Follower {
  readonly processId: string;
  readonly listener: LiveListener;
}

/** Between those who share one stores object in this process; nobody elsewhere hears of it. */
export class LocalLive implements LiveChannel {
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

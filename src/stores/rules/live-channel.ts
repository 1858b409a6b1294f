export interface LiveAddress {
  readonly tenant: string;
  readonly rootAgentId: string;
  /** The sender or follower; a process does not receive its own messages. Contains no white space. */
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
  isFollowed(place: LiveAddress): boolean;
  /** Sends to all other followers of the tree. */
  send(place: LiveAddress, message: string): void;
  /**
   * Subscribes to what other processes send about a tree. Asks them what is open as soon as it is subscribed, and again
   * after each interruption.
   */
  follow(place: LiveAddress, listener: (message: string) => void): LiveFollowing;
  /**
   * Called when another process asks what is open in a tree; answer with `send`. Returns a function that ends the
   * subscription.
   */
  onAsked(processId: string, listener: AskListener): () => void;
}

export type LiveListener = (message: string) => void;
export type AskListener = (tenant: string, rootAgentId: string) => void;

export interface LiveAddress {
  readonly tenant: string;
  readonly rootAgentId: string;
  /** The process that sends or follows; it does not receive its own messages. Contains no white space. */
  readonly processId: string;
}

/** A subscription to the messages of other processes about a tree. */
export interface LiveFollowing {
  /** Asks the other processes again for the open answers, because a message was lost. */
  ask(): void;
  end(): void;
}

/**
 * Transports data that is not stored, such as the text of an answer while it is being generated, to other processes with the same stores.
 *
 * Invariants
 * 1. The channel never waits, throws or delays work: a message that cannot be sent now is dropped.
 * 2. Messages of one process about a tree arrive in order, each at most once.
 * 3. Messages are not stored.
 */
export interface LiveChannel {
  /** Whether another process is known to follow the tree. Sends nothing. */
  isFollowed(place: LiveAddress): boolean;
  /** Sends a message to all other followers of the tree. */
  send(place: LiveAddress, message: string): void;
  /**
   * Subscribes to the messages of other processes about a tree. Asks for the open answers once it is subscribed, and again after each
   * interruption.
   */
  follow(place: LiveAddress, listener: (message: string) => void): LiveFollowing;
  /**
   * The listener is called when another process asks for the open answers of a tree; answer with `send`. Returns a function that ends the
   * subscription.
   */
  onAsked(processId: string, listener: AskListener): () => void;
}

export type LiveListener = (message: string) => void;
export type AskListener = (tenant: string, rootAgentId: string) => void;

/**
 * A tree of which the stores have lost the last changes, though they had acknowledged them: a server that does not sync each
 * write was killed, a replica took over that had not everything yet, or a backup was put in place.
 */
export interface SetBack {
  readonly tenant: string;
  readonly rootAgentId: string;
  /** When the newest change was made that this process knows of, in milliseconds since the epoch. */
  readonly hadAt: number;
  /** When the newest one was made that is left; null where nothing is left of the tree. */
  readonly foundAt: number | null;
}

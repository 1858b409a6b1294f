import { createHash, randomBytes } from "node:crypto";
import type { Identity } from "../core/identity.ts";

/** A ticket that was given out: it opens one stream of one tree, for the person who asked for it. */
export interface IssuedTicket {
  /** Who asked for the ticket. */
  readonly identity: Identity;
  /** The tree whose events it opens. */
  readonly rootAgentId: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** Where the tickets of one server or several wait for their use. */
export interface TicketStore {
  /** Keeps a ticket under its hash until it expires. */
  put(hash: string, issued: IssuedTicket, now: number): void | Promise<void>;
  /** Gives a ticket and forgets it, at once: of several callers one gets it. */
  take(hash: string): IssuedTicket | undefined | Promise<IssuedTicket | undefined>;
}

const TICKET_MS = 30_000;
/** Tickets that wait at a time; the oldest are dropped beyond it. */
const MOST_TICKETS = 10_000;

/**
 * Tickets for clients that cannot send a header with their token, such as `EventSource`.
 *
 * Invariants
 * 1. A ticket opens one stream, once, within 30 seconds.
 * 2. The store has hashes of tickets and no credentials: reading it opens nothing.
 */
export class Tickets {
  readonly #store: TicketStore;

  constructor(store: TicketStore = new TicketMemory()) {
    this.#store = store;
  }

  async issue({ identity, rootAgentId }: Omit<IssuedTicket, "expiresAt">, now: number) {
    const ticket = randomBytes(24).toString("base64url");
    const { userId, tenant, scopes } = identity;
    const issued = { identity: { userId, tenant, scopes }, rootAgentId, expiresAt: now + TICKET_MS };
    await this.#store.put(hashOf(ticket), issued, now);
    return { ticket, expiresAt: issued.expiresAt };
  }

  /** Uses a ticket up. Returns the identity that may open a stream of that tree with it, or `null` if it is not valid for it. */
  async use(ticket: string, rootAgentId: string, now: number): Promise<Identity | null> {
    const issued = await this.#store.take(hashOf(ticket));
    if (issued?.rootAgentId !== rootAgentId || issued.expiresAt <= now) return null;
    return issued.identity;
  }
}

/** Owns the tickets that this process gave out and that were not used yet. */
class TicketMemory implements TicketStore {
  /** By the hash of the ticket, oldest first. */
  readonly #issued = new Map<string, IssuedTicket>();

  put(hash: string, issued: IssuedTicket, now: number): void {
    // All tickets live equally long, so the old ones are at the front.
    for (const [old, { expiresAt }] of this.#issued) {
      if (expiresAt > now && this.#issued.size < MOST_TICKETS) break;
      this.#issued.delete(old);
    }
    this.#issued.set(hash, issued);
  }

  take(hash: string): IssuedTicket | undefined {
    const issued = this.#issued.get(hash);
    this.#issued.delete(hash);
    return issued;
  }
}

function hashOf(ticket: string): string {
  return createHash("sha256").update(ticket).digest("base64url");
}

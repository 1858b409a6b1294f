import { createHash, randomBytes } from "node:crypto";
import type { Identity } from "../core/identity.ts";

/** An issued ticket: it opens one stream of one tree for its owner. */
export interface IssuedTicket {
  /** Owner of the ticket. */
  readonly identity: Identity;
  /** The tree whose events the ticket opens. */
  readonly rootAgentId: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** Storage of the unused tickets of one or several servers. */
export interface TicketStore {
  /** Stores a ticket under its hash until it expires. */
  put(hash: string, issued: IssuedTicket, now: number): void | Promise<void>;
  /** Returns and deletes a ticket atomically: of several callers only one gets it. */
  take(hash: string): IssuedTicket | undefined | Promise<IssuedTicket | undefined>;
}

const TICKET_MS = 30_000;
/** Maximum number of unused tickets; beyond it the oldest are dropped. */
const MOST_TICKETS = 10_000;

/**
 * Tickets for clients that cannot send a header with their token, such as `EventSource`.
 *
 * Invariants
 * 1. A ticket opens one stream, once, within 30 seconds.
 * 2. The store contains hashes of tickets and no credentials: its content opens no stream.
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

  /** Consumes a ticket. Returns the identity that it was issued to, or `null` if it is invalid for that tree. */
  async use(ticket: string, rootAgentId: string, now: number): Promise<Identity | null> {
    const issued = await this.#store.take(hashOf(ticket));
    if (issued?.rootAgentId !== rootAgentId || issued.expiresAt <= now) return null;
    return issued.identity;
  }
}

/** Owns the unused tickets that this process issued. */
class TicketMemory implements TicketStore {
  /** Keyed by the hash of the ticket, oldest first. */
  readonly #issued = new Map<string, IssuedTicket>();

  put(hash: string, issued: IssuedTicket, now: number): void {
    // All tickets have the same lifetime, so the expired ones are at the front.
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

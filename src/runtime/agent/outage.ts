import type { StoreUnavailableError } from "../../errors/index.ts";
import type { EventSource } from "../../state/index.ts";

/** An agent of this process whose batch was refused. */
export interface Refused {
  readonly identity: EventSource;
  readonly isLost: boolean;
  readonly openTurnId: string | null;
  /** The turn that ended last, perhaps with what was refused. */
  readonly lastTurnId: string | null;
  turn(turnId: string): { readonly step: number } | undefined;
}

export interface OutageOptions {
  /** Tells whoever follows the turn, without storing it. */
  warn(source: EventSource, warning: LiveWarning): void;
}

export interface LiveWarning {
  readonly turnId: string;
  readonly step: number;
  readonly code: string;
  readonly message: string;
}

/**
 * What the stores do not take at the moment: they are full, locked or away. Whoever waits for it goes on waiting, since it
 * is sent again until it is taken, and is told.
 * Owns: whose batches were refused, and with which words. Does not own: sending them again.
 *
 * Invariant: the process is warned once for each time from the first refusal until all is taken, each turn once for its own.
 */
export class Outage {
  readonly #options: OutageOptions;
  readonly #refused = new Map<Refused, string>();

  constructor(options: OutageOptions) {
    this.#options = options;
  }

  /** In words; empty while the stores take everything. */
  get problems(): string[] {
    this.#forgetLost();
    const [first] = this.#refused.values();
    if (first === undefined) return [];
    const { size } = this.#refused;
    return [`the stores do not take what ${size} ${size === 1 ? "agent" : "agents"} of this process did: ${first}`];
  }

  refused(activation: Refused, { message }: StoreUnavailableError): void {
    this.#forgetLost();
    const isFirst = this.#refused.size === 0;
    const isNew = !this.#refused.has(activation);
    this.#refused.set(activation, message);
    const { agentId } = activation.identity;
    const told = `what agent ${agentId} did could not be stored and is sent again until it is taken; nothing of it counts before: ${message}`;
    if (isFirst) process.emitWarning(told, { code: "TROUPE_STORES_REFUSE" });
    const turnId = activation.openTurnId ?? activation.lastTurnId;
    if (!isNew || turnId === null) return;
    const step = activation.turn(turnId)?.step ?? 0;
    this.#options.warn(activation.identity, { turnId, step, code: "store_unavailable", message: told });
  }

  /** To be called after each commit. */
  taken(activation: Refused): void {
    if (this.#refused.size > 0) this.#refused.delete(activation);
  }

  #forgetLost(): void {
    for (const activation of this.#refused.keys()) if (activation.isLost) this.#refused.delete(activation);
  }
}

import type { RunEntry, RunLog } from "./run-log.ts";

export interface CurvePoint {
  readonly time: number;
  readonly used: number;
  readonly reserved: number;
}

interface TokensChanged {
  readonly place: number;
  readonly accountId: string;
  readonly used: number;
  readonly reserved: number;
}

/**
 * The reserved and used tokens over time, from the log, to draw curves of accounts.
 * Owns: the changes of tokens, in order. Does not own: the tree of accounts.
 */
export class Spending {
  readonly #log: RunLog;
  #changes: TokensChanged[] = [];
  #read: number;

  constructor(log: RunLog) {
    this.#log = log;
    this.#read = log.first;
  }

  /** Tokens of an account over the run. `isUnder` returns whether an account is the wanted one or below it. */
  curve(isUnder: (accountId: string) => boolean): CurvePoint[] {
    this.#update();
    const points: CurvePoint[] = [];
    const below = new Map<string, boolean>();
    let used = 0;
    let reserved = 0;
    for (const change of this.#changes) {
      const { accountId } = change;
      const isBelow = below.get(accountId) ?? isUnder(accountId);
      below.set(accountId, isBelow);
      if (!isBelow) continue;
      used += change.used;
      reserved += change.reserved;
      points.push({ time: this.#log.timeOf(change.place), used, reserved });
    }
    return points;
  }

  #update(): void {
    const log = this.#log;
    const [oldest] = this.#changes;
    if (oldest && oldest.place < log.first) this.#changes = this.#changes.filter(({ place }) => place >= log.first);
    for (let place = Math.max(this.#read, log.first); place < log.length; place += 1) {
      const entry = log.entry(place);
      const change = entry && tokensChanged(entry, place);
      if (change) this.#changes.push(change);
    }
    this.#read = log.length;
  }
}

function tokensChanged(entry: RunEntry, place: number): TokensChanged | undefined {
  switch (entry.type) {
    case "model.requested":
    case "generate.requested": {
      const { reservation } = entry;
      return reservation
        ? { place, accountId: reservation.accountId, used: 0, reserved: reservation.tokens }
        : undefined;
    }
    case "model.responded":
    case "model.failed":
    case "generate.responded":
    case "generate.failed":
    case "tool.billed": {
      if (!entry.settlement) return undefined;
      const { reservation, tokens } = entry.settlement;
      return { place, accountId: reservation.accountId, used: tokens, reserved: -reservation.tokens };
    }
    default:
      return undefined;
  }
}

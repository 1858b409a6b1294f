import type { Reservation, Settlement } from "../budget/index.ts";
import type { Host } from "./host.ts";

/** Code that makes model calls of its own: a hook, a tool, a compaction. */
interface Run {
  readonly turnId: string;
  readonly step: number;
  readonly run: string;
}

/** The settlement of a call of which nobody knows what it has cost: in full. */
export function unconfirmedSettlement(reservation: Reservation): Settlement {
  const { tokens, costMicros } = reservation;
  return { reservation, tokens, costMicros, usage: null, unconfirmed: true };
}

/**
 * Settles in full what was in flight for a run when its process died: one call, before it is made again; or, without
 * `index`, all of them when the code has ended. Then nobody makes them again, because the code was not repeated or did
 * something else, and the turn would wait for them and never be at rest.
 */
export function settleAbandoned(host: Host, { turnId, step, run }: Run, index?: number): void {
  for (const open of host.turn(turnId)?.openGenerates ?? []) {
    if (open.run !== run || (index !== undefined && open.index !== index) || open.epoch >= host.epoch) continue;
    const settlement = unconfirmedSettlement(open.reservation);
    const error = { code: "interrupted", message: "the process ended while the call was in flight", retryable: true };
    host.append(
      { type: "generate.failed", turnId, step, run, index: open.index, error, usage: null, settlement },
      { moves: [{ type: "settle", settlement }] },
    );
  }
}

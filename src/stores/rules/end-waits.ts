import { type ReservationAsk, turnAccountId } from "../../budget/index.ts";
import type { AgentRecord } from "../../state/index.ts";
import type { Batch } from "./batch.ts";
import { Ledger } from "./ledger.ts";
import type { Moment } from "./moment.ts";
import type { Tables } from "./tables.ts";

/**
 * Takes those out of the line for reservations who will not ask again: nobody must wait behind them, and no room is kept for
 * them. Their turn has ended, their agent is shut down or held, or the code that asked is gone.
 */
export function endWaits({ key, entries, owned, closedTurnId }: Batch, record: AgentRecord, ledger: Ledger): void {
  const { agentId } = key;
  const over = closedTurnId ?? (owned?.status === "shutdown" ? record.openTurnId : null);
  if (over !== null) ledger.leave(turnAccountId(over), ({ ask }) => ask.agentId === agentId);
  for (const entry of entries) {
    if (entry.type !== "tool.settled") continue;
    const ofCall = `${entry.turnId}:${entry.callId}:`;
    ledger.leave(turnAccountId(entry.turnId), ({ ask }) => ask.key.startsWith(ofCall));
  }
}

/** When a turn asks for its next model call, no code of its hooks or tools waits for a call of `generate()` any more. */
export function forgetSideCalls({ accountId, agentId, key }: ReservationAsk, ledger: Ledger): void {
  ledger.leave(accountId, ({ ask }) => ask.agentId === agentId && ask.key !== key);
}

/**
 * The same for agents of one tree that were told to hold: they ask again when they go on, behind those that came meanwhile.
 * Gives the agents that may ask now.
 */
export function endWaitsOf(
  tables: Tables,
  records: readonly AgentRecord[],
  cause: string,
  moment: Moment,
): readonly string[] {
  const [first] = records;
  if (!first) return [];
  const { tenant, agentId, rootAgentId } = first;
  const ledger = new Ledger(tables, { id: cause, key: { tenant, agentId }, rootAgentId }, moment);
  const held = new Set(records.map((record) => record.agentId));
  for (const { openTurnId } of records) {
    if (openTurnId !== null) ledger.leave(turnAccountId(openTurnId), ({ ask }) => held.has(ask.agentId));
  }
  return ledger.flush().posted;
}

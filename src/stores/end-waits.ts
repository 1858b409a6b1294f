import { type ReservationAsk, turnAccountId, wakeNext, withoutWaiters } from "../budget/index.ts";
import type { AgentRecord, InboxItem } from "../state/index.ts";
import type { Batch } from "./batch.ts";
import type { Ledger } from "./ledger.ts";
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
 * The same for agents that were told to hold: they ask again when they go on, behind those that came meanwhile. Gives the
 * agents that may ask now.
 */
export function endWaitsOf(tables: Tables, records: readonly AgentRecord[], cause: string, now: number): string[] {
  const posted: string[] = [];
  const item: InboxItem = { kind: "budget.freed", key: `budget.freed:${cause}`, at: now };
  const held = new Set(records.map(({ agentId }) => agentId));
  for (const { tenant, rootAgentId, openTurnId } of records) {
    const find = (id: string) => tables.account(tenant, id);
    let top = openTurnId === null ? undefined : find(turnAccountId(openTurnId));
    while (top?.parentId) top = find(top.parentId);
    const rest = top && withoutWaiters(top, ({ ask }) => held.has(ask.agentId));
    if (!rest || rest === top) continue;
    const { waiters, agentIds } = wakeNext(rest.waiters, find, now);
    tables.putAccount(tenant, rootAgentId, { ...rest, waiters: [...waiters] });
    for (const agentId of agentIds) if (tables.addToInbox({ tenant, agentId }, item)) posted.push(agentId);
  }
  return posted;
}

import { turnAccountId } from "../budget/index.ts";
import type { AgentKey, AgentRecord } from "../state/index.ts";
import type { MarkOutcome } from "./outcomes.ts";
import type { AbortCommand } from "./ports.ts";
import type { Tables } from "./tables.ts";

/**
 * Ends whatever is open below the agent and spends under one account of it: its limit on time has run out. What belongs to the
 * agent's own open turn is left to that turn, which ends it with itself.
 */
export function abortSpenders(
  tables: Tables,
  key: AgentKey,
  command: AbortCommand & { readonly accountId: string },
  now: number,
): MarkOutcome {
  const holder = tables.agent(key);
  if (!holder) return { type: "notFound" };
  const { accountId, by, reason, stopReason } = command;
  const posted: string[] = [];
  const end = (at: AgentRecord, turnId: string): void => {
    if (at.abort?.turnId === turnId) return;
    tables.putAgent({ ...at, pause: null, abort: { by, at: now, turnId, reason } });
    const item = {
      kind: "abort",
      key: `abort:${accountId}:${turnId}`,
      at: now,
      turnId,
      by,
      reason,
      stopReason,
    } as const;
    if (tables.addToInbox({ tenant: at.tenant, agentId: at.agentId }, item)) posted.push(at.agentId);
  };
  const visit = (at: AgentRecord): void => {
    if (at.openTurnId !== null && spendsUnder(tables, at, at.openTurnId, accountId)) end(at, at.openTurnId);
    for (const child of tables.childrenOf({ tenant: at.tenant, agentId: at.agentId })) visit(child);
  };
  for (const child of tables.childrenOf(key)) {
    const isOfOpenTurn = child.parentTurnId !== null && child.parentTurnId === holder.openTurnId;
    if (!isOfOpenTurn || child.background) visit(child);
  }
  return { type: posted.length > 0 ? "marked" : "unchanged", posted };
}

function spendsUnder(tables: Tables, spender: AgentRecord, turnId: string, accountId: string): boolean {
  const { tenant } = spender;
  // A turn that waits to begin has no account yet.
  const first = tables.account(tenant, turnAccountId(turnId))?.id ?? spender.accountId;
  for (let id = first; id !== null; id = tables.account(tenant, id)?.parentId ?? null)
    if (id === accountId) return true;
  return false;
}

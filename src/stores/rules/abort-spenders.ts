import { turnAccountId } from "../../budget/index.ts";
import type { AgentKey, AgentRecord } from "../../state/index.ts";
import type { MarkAsk } from "./mark-rules.ts";
import { markTree } from "./mark-tree.ts";
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
  const { accountId, by } = command;
  const ask = (at: AgentRecord, isBound: boolean): MarkAsk | null => {
    if (at === holder) return "none";
    if (isBound) return null;
    return at.openTurnId !== null && spendsUnder(tables, at, at.openTurnId, accountId) ? "end" : "none";
  };
  const { posted } = markTree(tables, holder, ask, { by, now, abort: { ...command, source: `abort:${accountId}` } });
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

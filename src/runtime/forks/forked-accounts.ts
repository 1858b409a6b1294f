import {
  type Account,
  agentAccountId,
  backgroundAccountId,
  noAmounts,
  nothingReserved,
  turnAccountId,
} from "../../budget/index.ts";
import type { EntryOf } from "../../state/index.ts";
import type { StoredTree } from "../../stores/index.ts";
import type { Past, PastAgent } from "./past-of.ts";

/** The accounts of a fork. */
export interface ForkedAccounts {
  /** Those that the fork spends from: unused, with the limits of the origin. */
  readonly live: readonly Account[];
  /** Those of ended turns, which show what the origin has spent. */
  readonly over: readonly Account[];
}

export function accountsOf({ accounts }: StoredTree, { agents }: Past): ForkedAccounts {
  const known = new Map(accounts.map((account) => [account.id, account]));
  const open = new Set(agents.flatMap((agent) => turnsOf(agent).open?.turnId ?? []));
  const live: Account[] = [];
  const over: Account[] = [];
  for (const agent of agents) {
    const { record } = agent.stored;
    const turns = turnsOf(agent);
    const life = known.get(agentAccountId(record.agentId));
    const isSpawnerOpen = record.parentTurnId !== null && open.has(record.parentTurnId);
    if (life) live.push(unused({ ...life, parentId: isSpawnerOpen ? record.parentAccountId : life.parentId }));
    for (const { turnId } of turns.ended) {
      const account = known.get(turnAccountId(turnId));
      if (account) over.push(atRest(account));
      const background = known.get(backgroundAccountId(turnId));
      if (background) live.push(unused(background));
    }
    const account = turns.open && known.get(turnAccountId(turns.open.turnId));
    if (turns.open && account) live.push(unused({ ...account, limits: turns.open.limits }));
  }
  return { live, over };
}

/** The turns of an agent in its past. */
export function turnsOf({ entries }: Pick<PastAgent, "entries">): {
  readonly ended: readonly EntryOf<"turn.ended">[];
  readonly open: EntryOf<"turn.started"> | undefined;
} {
  const ended: EntryOf<"turn.ended">[] = [];
  let open: EntryOf<"turn.started"> | undefined;
  for (const entry of entries) {
    if (entry.type === "turn.started") open = entry;
    if (entry.type !== "turn.ended") continue;
    ended.push(entry);
    open = undefined;
  }
  return { ended, open };
}

function atRest({ line: _waiters, ...account }: Account): Account {
  return {
    ...account,
    reserved: nothingReserved,
    unconfirmed: nothingReserved,
    isActive: false,
    activeCount: 0,
    activeSince: null,
  };
}

function unused({ firstLimits: _before, ...account }: Account): Account {
  return { ...atRest(account), used: noAmounts, models: {}, warned: [] };
}

import { deepFreeze } from "../../base/index.ts";
import { type Account, addModelUse, type ModelUse, noModelUse, type UseByModel } from "../../budget/index.ts";
import { agentOfAccount, numberOfTurn } from "../../state/index.ts";

/** What one agent may spend and has spent, as this process last saw it. */
export interface BudgetOverview {
  /** By the name of the model: its own calls, over all its turns. */
  readonly own: UseByModel;
  /** The same with all that counts on its accounts: subagents too. */
  readonly tree: UseByModel;
  /** Its accounts with limits, used, reserved and unconfirmed: of its life, of its newest turn, of children in the background. */
  readonly accounts: Readonly<Record<string, Account>>;
}

export type BudgetOverviews = Readonly<Record<string, BudgetOverview>>;

const none: BudgetOverview = { own: {}, tree: {}, accounts: {} };

/**
 * The budgets after accounts have changed. What is spent is added up by differences: an account of a turn that is over
 * need not be kept.
 */
export function accounted(budgets: BudgetOverviews, accounts: readonly Account[]): BudgetOverviews {
  const next: Record<string, BudgetOverview> = { ...budgets };
  for (const account of accounts) {
    const { id, agentId, parentId, models } = account;
    const known = next[agentId] ?? none;
    if (isOver(known, account)) continue;
    const holder = parentId === null ? null : agentOfAccount(parentId);
    // A turn under its agent's lifetime account is in that one's figures.
    const counts = holder !== agentId;
    const more = counts ? difference(models, known.accounts[id]?.models ?? {}) : {};
    next[agentId] = deepFreeze({
      own: counts ? sum(known.own, more, 1) : known.own,
      tree: counts ? sum(known.tree, more, 1) : known.tree,
      accounts: keptAccounts(known.accounts, account),
    });
    if (!counts || holder === null) continue;
    const above = next[holder] ?? none;
    next[holder] = deepFreeze({ ...above, own: sum(above.own, more, -1) });
  }
  return next;
}

function isTurn({ id }: Account): boolean {
  return id.startsWith("turn:");
}

/** An account of an earlier turn than the newest. */
function isOver({ accounts }: BudgetOverview, account: Account): boolean {
  return isTurn(account) && Object.values(accounts).some((other) => isTurn(other) && turnOf(other) > turnOf(account));
}

function keptAccounts(accounts: Readonly<Record<string, Account>>, account: Account): Record<string, Account> {
  const kept = Object.values(accounts).filter((other) => !isTurn(account) || !isTurn(other));
  return Object.fromEntries([...kept, account].map((one) => [one.id, one]));
}

function turnOf({ id }: Account): number {
  return numberOfTurn(id);
}

/** What the models have used more than before. */
function difference(now: UseByModel, before: UseByModel): UseByModel {
  // One commit in two settles no call.
  if (now === before) return {};
  return sum(now, before, -1);
}

function sum(one: UseByModel, other: UseByModel, sign: 1 | -1): UseByModel {
  const changed = Object.entries(other).map(([model, use]) => {
    const part = sign === 1 ? use : negative(use);
    return [model, addModelUse((Object.hasOwn(one, model) ? one[model] : undefined) ?? noModelUse, part)] as const;
  });
  if (changed.length === 0) return one;
  const all = Object.fromEntries([...Object.entries(one), ...changed]);
  return Object.fromEntries(Object.entries(all).filter(([, use]) => !isNothing(use)));
}

function negative(use: ModelUse): ModelUse {
  return Object.fromEntries(Object.entries(use).map(([name, amount]) => [name, -amount])) as ModelUse;
}

function isNothing(use: ModelUse): boolean {
  return Object.values(use).every((amount) => amount === 0);
}

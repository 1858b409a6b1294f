import { type Account, type Amounts, type LimitName, usedAt } from "../../budget/index.ts";

type AmountLimit = Exclude<LimitName, "deadlineAt">;

const amountOf: Readonly<Record<AmountLimit, keyof Amounts>> = {
  maxSteps: "steps",
  maxTreeSteps: "treeSteps",
  maxToolCalls: "toolCalls",
  maxTreeToolCalls: "treeToolCalls",
  maxTokens: "tokens",
  maxCostMicros: "costMicros",
  maxActiveMs: "activeMs",
};

export interface Standing {
  readonly used: number;
  readonly limit: number;
}

/**
 * How an agent stands against one of its limits: on the account, of its lifetime or of its open turn, where the least is
 * left. Undefined where no account has that limit.
 */
export function standingOf(accounts: readonly Account[], limit: AmountLimit, now: number): Standing | undefined {
  let tightest: Standing | undefined;
  for (const account of accounts) {
    const most = account.limits[limit];
    if (most === undefined) continue;
    const used = usedAt(account, now)[amountOf[limit]];
    if (tightest === undefined || most - used < tightest.limit - tightest.used) tightest = { used, limit: most };
  }
  return tightest;
}

/** The accounts that bind an agent's own work now: its lifetime's and its newest turn's. */
export function accountsOfAgent(accounts: readonly Account[], agentId: string, turnId: string | null): Account[] {
  return accounts.filter(
    (account) => account.agentId === agentId && (account.turnId === null || account.turnId === turnId),
  );
}

/** Milliseconds in which an agent worked or its children did, over all its turns; pauses do not count. */
export function workingTimeOf(accounts: readonly Account[], agentId: string, now: number): number {
  return accounts
    .filter((account) => account.agentId === agentId && account.turnId !== null)
    .reduce((total, account) => total + usedAt(account, now).activeMs, 0);
}

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
  /** Set aside for calls in flight; 0 for limits that nothing is reserved of. */
  readonly reserved: number;
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
    const reserved = reservedOf(account, limit);
    const isTighter = tightest === undefined || most - used < tightest.limit - tightest.used;
    if (isTighter) tightest = { used, reserved, limit: most };
  }
  return tightest;
}

function reservedOf({ reserved }: Account, limit: AmountLimit): number {
  if (limit === "maxTokens") return reserved.tokens;
  return limit === "maxCostMicros" ? reserved.costMicros : 0;
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

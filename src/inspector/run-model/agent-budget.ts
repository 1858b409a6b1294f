import { activeMsAt, activeUntil, agentAccountId, amountOfLimit, type LimitName } from "../../budget/index.ts";
import type { AccountAt } from "./account-at.ts";
import { type LimitUse, limitUses, shareOf } from "./limit-use.ts";
import type { RunAgent } from "./run-log.ts";
import type { RunMoment } from "./run-moments.ts";

/** The accounts that pay for what an agent does at the moment, from its own to the top. */
export function payingAccounts({ accounts, agents }: RunMoment, agent: RunAgent): AccountAt[] {
  const own = agents[agent.index]?.accountId ?? agentAccountId(agent.agentId);
  return accounts.chain(accounts.account(own) ? own : (agent.parentAccountId ?? ""));
}

/** A limit that bounds an agent, on its own account or on one above it. */
export interface BindingLimit extends LimitUse {
  readonly account: AccountAt;
}

/** How full the limits are that bound an agent; each is the fullest of its kind, undefined where there is none. */
export interface AgentBudget {
  /** Of its own accounts; of an agent that has none above it, those that count this agent alone. */
  readonly own: BindingLimit | undefined;
  /** Of the accounts above it, which it shares; of an agent that has none above it, those that count all below it too. */
  readonly tree: BindingLimit | undefined;
  readonly binding: BindingLimit | undefined;
}

/** Limits that count the account's own agent alone, and so never bind those below it. */
const ofOneAgent: ReadonlySet<LimitName> = new Set(["maxSteps", "maxToolCalls"]);

/** `chain`: the agent's accounts and those above, from its own to the top. */
export function agentBudget(chain: readonly AccountAt[], agentId: string, time: number): AgentBudget {
  const isTop = chain.every((account) => account.agentId === agentId);
  const own: BindingLimit[] = [];
  const tree: BindingLimit[] = [];
  for (const account of chain) {
    const isOwn = account.agentId === agentId;
    for (const use of usesOf(account, time)) {
      const isAlone = ofOneAgent.has(use.limit);
      if (isOwn && (isAlone || !isTop)) own.push({ ...use, account });
      else if (isOwn || !isAlone) tree.push({ ...use, account });
    }
  }
  const [fullestOwn, fullestTree] = [fullest(own), fullest(tree)];
  const binding = fullest([fullestOwn, fullestTree].flatMap((use) => use ?? []));
  return { own: fullestOwn, tree: fullestTree, binding };
}

/** The limits of an account with its deadline, of which the time since the account was opened is used. */
export function usesOf(account: AccountAt, time: number): LimitUse[] {
  const { openedAt, closedAt, limits } = account;
  const { deadlineAt } = limits;
  const uses = limitUses(account, time);
  if (deadlineAt === undefined) return uses;
  const used = Math.max(0, Math.min(closedAt ?? time, deadlineAt) - openedAt);
  const max = Math.max(0, deadlineAt - openedAt);
  return [...uses, { limit: "deadlineAt", used, reserved: 0, unconfirmed: 0, max }];
}

/** The first one of those that are equally full. */
function fullest(uses: readonly BindingLimit[]): BindingLimit | undefined {
  let found: BindingLimit | undefined;
  for (const use of uses) if (!found || shareOf(use) > shareOf(found)) found = use;
  return found;
}

/** When a limit is reached if things go on as they are. */
export interface Forecast {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** False for a limit on time, which is reached at exactly that moment if the work goes on until then. */
  readonly isEstimate: boolean;
}

/**
 * When the limit is reached at the rate at which its account has used it so far, per working time.
 * `undefined` if no rate is known: nothing was used, no agent of the account works, or the limit is reached already.
 */
export function forecastOf({ account, limit, used, max }: BindingLimit, time: number): Forecast | undefined {
  if (account.closedAt !== null || used >= max) return undefined;
  if (limit === "deadlineAt") return { at: account.limits.deadlineAt ?? time, isEstimate: false };
  if (limit === "maxActiveMs") {
    const at = activeUntil(account);
    return at === undefined ? undefined : { at, isEstimate: false };
  }
  const activeMs = activeMsAt(account, time);
  const settled = account.used[amountOfLimit[limit]];
  if (account.activeSince === null || activeMs <= 0 || settled <= 0) return undefined;
  return { at: time + ((max - settled) * activeMs) / settled, isEstimate: true };
}

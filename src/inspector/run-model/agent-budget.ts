import { type Account, activeUntil, agentAccountId, forecastsOf, type LimitName } from "../../budget/index.ts";
import type { AccountAt } from "./account-at.ts";
import { type LimitUse, limitUses, shareOf } from "./limit-use.ts";
import type { RunAgent } from "./run-log.ts";
import type { RunMoment } from "./run-moments.ts";

/** The accounts that currently pay for an agent, from its own to the top. */
export function payingAccounts({ accounts, agents }: RunMoment, agent: RunAgent): AccountAt[] {
  const own = agents[agent.index]?.accountId ?? agentAccountId(agent.agentId);
  return accounts.chain(accounts.account(own) ? own : (agent.parentAccountId ?? ""));
}

/** A limit that applies to an agent, on its own account or on one above it. */
export interface BindingLimit extends LimitUse {
  readonly account: AccountAt;
}

/** How full an agent's limits are: the fullest of each kind, `undefined` if there is none. */
export interface AgentBudget {
  /** The fullest limit of its own accounts. For a top agent: of the limits that count only this agent. */
  readonly own: BindingLimit | undefined;
  /** The fullest limit of the shared accounts above it. For a top agent: of the limits that also count its descendants. */
  readonly tree: BindingLimit | undefined;
  readonly binding: BindingLimit | undefined;
}

/** Limits that count only the account's own agent, so they never apply to its descendants. */
const ofOneAgent: ReadonlySet<LimitName> = new Set(["maxSteps", "maxToolCalls"]);

/** `chain`: the agent's accounts and their ancestors, from its own to the top. */
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

/** The limits of an account, with its deadline, whose used amount is the time since the account was opened. */
export function usesOf(account: AccountAt, time: number): LimitUse[] {
  const { openedAt, closedAt, limits } = account;
  const { deadlineAt } = limits;
  const uses = limitUses(account, time);
  if (deadlineAt === undefined) return uses;
  const used = Math.max(0, Math.min(closedAt ?? time, deadlineAt) - openedAt);
  const max = Math.max(0, deadlineAt - openedAt);
  return [...uses, { limit: "deadlineAt", used, reserved: 0, unconfirmed: 0, max }];
}

/** The fullest use; the first of equals. */
function fullest(uses: readonly BindingLimit[]): BindingLimit | undefined {
  let found: BindingLimit | undefined;
  for (const use of uses) if (!found || shareOf(use) > shareOf(found)) found = use;
  return found;
}

/** When a limit will be reached at the current rate. */
export interface Forecast {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** False for a time limit, which is reached at exactly that time if the work continues. */
  readonly isEstimate: boolean;
}

/**
 * When the limit will be reached at the account's rate so far. `undefined` if it is reached already, or no rate is known because nothing
 * was used or no agent of the account works.
 */
export function forecastOf({ account, limit, used, max }: BindingLimit, time: number): Forecast | undefined {
  if (account.closedAt !== null || used >= max) return undefined;
  if (limit === "deadlineAt") return { at: account.limits.deadlineAt ?? time, isEstimate: false };
  if (limit === "maxActiveMs") {
    const at = activeUntil(account);
    return at === undefined ? undefined : { at, isEstimate: false };
  }
  if (account.activeSince === null) return undefined;
  const at = metAt(account, limit, time);
  return at === null ? undefined : { at, isEstimate: true };
}

/** When a limit of an account will be met, as `troupe forecast` computes it; `null` if not before it renews, or never at its rate. */
export function metAt(account: Account, limit: LimitName, time: number): number | null {
  return forecastsOf(account, time).find((one) => one.limit === limit)?.metAt ?? null;
}

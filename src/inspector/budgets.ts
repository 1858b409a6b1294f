import { type Account, amountOfLimit, type LimitName, limitNameSchema, usedAt } from "../budget/index.ts";
import type { Overview } from "../runtime/index.ts";
import { numberOfTurn, rootOf } from "../state/index.ts";
import { type BudgetFrame, type BudgetRow, FRAME_VERSION } from "./frames.ts";

/** Most agents with accounts; those that changed last are kept. */
const mostAgents = 2_000;

export type BudgetListener = (frame: BudgetFrame) => void;

/**
 * The budgets of watched agents.
 * Owns: the last frame of each agent. Does not own: the overviews.
 */
export class BudgetWatch {
  readonly #now: () => number;
  readonly #frames = new Map<string, BudgetFrame>();
  readonly #listeners = new Set<BudgetListener>();
  #count = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** The returned function ends it. */
  watch({ overview }: { readonly overview: Overview }): () => void {
    let known = overview.getSnapshot().context.budgets;
    const look = (budgets: typeof known, isFirst: boolean): void => {
      for (const [agentId, budget] of Object.entries(budgets)) {
        if (isFirst || known[agentId] !== budget) this.#note(agentId, Object.values(budget.accounts));
      }
      known = budgets;
    };
    look(known, true);
    const subscription = overview.subscribe(({ context }) => {
      if (context.budgets !== known) look(context.budgets, false);
    });
    return () => subscription.unsubscribe();
  }

  frames(): BudgetFrame[] {
    return [...this.#frames.values()];
  }

  subscribe(listener: BudgetListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #note(agentId: string, accounts: readonly Account[]): void {
    this.#count += 1;
    const now = this.#now();
    const base = { sessionId: agentId, rootId: rootOf(agentId), createdAt: String(now), _version: FRAME_VERSION };
    const rows = accounts.flatMap((account) => rowsOf(account, now));
    const frame: BudgetFrame = { type: "troupe.budgets", ...base, id: `b${this.#count}`, rows };
    this.#frames.delete(agentId);
    this.#frames.set(agentId, frame);
    if (this.#frames.size > mostAgents) this.#frames.delete(this.#frames.keys().next().value ?? "");
    for (const listener of this.#listeners) listener(frame);
  }
}

/** Tokens and known cost always have a row, other amounts if they are limited, as in `troupe show --budget`. */
function rowsOf(account: Account, now: number): BudgetRow[] {
  const used = usedAt(account, now);
  return limitNameSchema.options.flatMap((limit) => {
    const max = account.limits[limit] ?? null;
    const row = { account: labelOf(account), limit, max, ...amountsOf(account, limit, used) };
    const isShown = max !== null || limit === "maxTokens" || (limit === "maxCostMicros" && row.used + row.reserved > 0);
    return isShown ? [row] : [];
  });
}

function amountsOf({ reserved, unconfirmed }: Account, limit: LimitName, used: Account["used"]) {
  if (limit === "deadlineAt") return { used: 0, reserved: 0, unconfirmed: 0 };
  const amount = amountOfLimit[limit];
  if (amount !== "tokens" && amount !== "costMicros") return { used: used[amount], reserved: 0, unconfirmed: 0 };
  return { used: used[amount], reserved: reserved[amount], unconfirmed: unconfirmed[amount] };
}

function labelOf({ id, turnId }: Account): string {
  if (id.startsWith("background:")) return `background of turn ${numberOfTurn(id)}`;
  return turnId === null ? "whole life" : `turn ${numberOfTurn(turnId)}`;
}

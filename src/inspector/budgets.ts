import { type Account, amountOfLimit, type LimitName, limitNameSchema, usedAt } from "../budget/index.ts";
import type { BudgetOverview, Overview } from "../runtime/index.ts";
import { numberOfTurn, rootOf } from "../state/index.ts";
import { type BudgetFrame, type BudgetRow, FRAME_VERSION } from "./frames.ts";

/** Most agents with accounts; those that changed last are kept. */
const mostAgents = 2_000;

export type BudgetListener = (frame: BudgetFrame) => void;

/**
 * The budgets of watched agents.
 * Owns: the last budget of each agent, those that changed last at the end. Does not own: the overviews.
 *
 * Invariant: a change of a budget costs a place in a map; frames are made when somebody listens or asks for them.
 */
export class BudgetWatch {
  readonly #now: () => number;
  readonly #overviews = new Set<Overview>();
  readonly #budgets = new Map<string, BudgetOverview>();
  /** Those that were taken, to tell them from changes that observers have not been told of yet. */
  readonly #taken = new WeakSet<BudgetOverview>();
  readonly #frames = new WeakMap<BudgetOverview, BudgetFrame>();
  readonly #listeners = new Set<BudgetListener>();
  #count = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** The returned function ends it. */
  watch({ overview }: { readonly overview: Overview }): () => void {
    this.#overviews.add(overview);
    const subscription = overview.subscribe((_snapshot, { budgets }) => {
      for (const agentId of budgets) {
        const budget = overview.budget(agentId).get();
        if (!budget) continue;
        this.#take(agentId, budget);
        if (this.#listeners.size === 0) continue;
        const frame = this.#frameOf(agentId, budget);
        for (const listener of this.#listeners) listener(frame);
      }
    });
    return () => {
      subscription.unsubscribe();
      this.#takeAll(overview);
      this.#overviews.delete(overview);
    };
  }

  frames(): BudgetFrame[] {
    for (const overview of this.#overviews) this.#takeAll(overview);
    return Array.from(this.#budgets, ([agentId, budget]) => this.#frameOf(agentId, budget));
  }

  subscribe(listener: BudgetListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #takeAll(overview: Overview): void {
    for (const [agentId, budget] of Object.entries(overview.getSnapshot().context.budgets)) {
      this.#take(agentId, budget);
    }
  }

  #take(agentId: string, budget: BudgetOverview): void {
    if (this.#taken.has(budget)) return;
    this.#taken.add(budget);
    this.#budgets.delete(agentId);
    this.#budgets.set(agentId, budget);
    if (this.#budgets.size > mostAgents) this.#budgets.delete(this.#budgets.keys().next().value ?? "");
  }

  #frameOf(agentId: string, budget: BudgetOverview): BudgetFrame {
    const made = this.#frames.get(budget);
    if (made) return made;
    this.#count += 1;
    const now = this.#now();
    const base = { sessionId: agentId, rootId: rootOf(agentId), createdAt: String(now), _version: FRAME_VERSION };
    const rows = Object.values(budget.accounts).flatMap((account) => rowsOf(account, now));
    const frame: BudgetFrame = { type: "troupe.budgets", ...base, id: `b${this.#count}`, rows };
    this.#frames.set(budget, frame);
    return frame;
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

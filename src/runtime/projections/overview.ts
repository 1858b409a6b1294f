import { createStore } from "@xstate/store";
import { type Clock, deepFreeze, harmless } from "../../base/index.ts";
import { type Account, addModelUse, type ModelUse, noModelUse, type UseByModel } from "../../budget/index.ts";
import {
  agentOfAccount,
  type AgentOverview,
  noteAgentEvent,
  numberOfTurn,
  rootOf,
  type TroupeEvent,
} from "../../state/index.ts";

/** All agents of a process with their budgets. */
export interface OverviewState {
  /** The agents that emitted an event in this process, by id. */
  readonly agents: Readonly<Record<string, AgentOverview>>;
  /** Limits and spending of each agent, by its id. */
  readonly budgets: BudgetOverviews;
}

/** The state at one moment, in the form of a store's snapshot. */
export interface OverviewSnapshot {
  /** Always `active`; required by the shape of a store's snapshot. */
  readonly status: "active";
  /** Always `undefined`; required by the shape of a store's snapshot. */
  readonly output: undefined;
  /** Always `undefined`; required by the shape of a store's snapshot. */
  readonly error: undefined;
  /** The agents and their budgets. */
  readonly context: OverviewState;
}

type Observing<Value> = ((value: Value) => unknown) | { readonly next?: (value: Value) => unknown };

/**
 * A value that changes: the overview, or a value derived from it. A `Readable` of `@xstate/store`, so `useSelector` accepts it.
 */
export interface OverviewPart<Value> {
  /** The current value. The same object until something changes. */
  get(): Value;
  /** Calls the observer with the new value after changes, at most once per turn of the event loop. */
  subscribe(observer: Observing<Value>): { unsubscribe(): void };
}

/**
 * All agents of this process and their budgets. Reads return current values; observers are called after changes, at most once per
 * turn of the event loop, and less often if calling them takes long.
 */
export interface Overview extends OverviewPart<OverviewSnapshot> {
  /** The same as `get()`. */
  getSnapshot(): OverviewSnapshot;
  /** One agent; `undefined` until its first event. */
  agent(agentId: string): OverviewPart<AgentOverview | undefined>;
  /** The budget of one agent; `undefined` until a commit of this process changes it. */
  budget(agentId: string): OverviewPart<BudgetOverview | undefined>;
  /** A value computed from the state. Its observers are called when the result changes, by default compared with `Object.is`. */
  select<Value>(
    selector: (state: OverviewState) => Value,
    isEqual?: (one: Value, other: Value) => boolean,
  ): OverviewPart<Value>;
}

/** After calling observers, the next call waits this many times as long as they took, at most the longest pause. */
const PAUSES = 20;
const LONGEST_PAUSE_MS = 1_000;

function createToldStore() {
  return createStore({
    context: stateOf(new Map(), new Map()),
    on: { moved: (_context, { state }: { state: OverviewState }) => state },
  });
}

/**
 * The overview of a runtime, fed with its events and accounts.
 * Owns: the newest value of each agent and budget, and a store with the state last passed to observers. Does not own: the errors
 * of observers and selectors, which become warnings.
 *
 * Invariants
 * 1. An event or a commit costs the same for any number of agents; the full copy is made when the state is read or passed to
 *    observers.
 * 2. Reading calls no observer; calling observers uses at most a twentieth of the time.
 * 3. All returned values are frozen.
 */
export class OverviewStore implements Overview {
  readonly #agents = new Map<string, AgentOverview>();
  readonly #budgets = new Map<string, BudgetOverview>();
  /** The newest values of accounts not yet merged into the budgets: each commit also changes those of all agents above. */
  readonly #accounts = new Map<string, Account>();
  readonly #told = createToldStore();
  #snapshot: OverviewSnapshot | undefined;
  #observers = 0;
  #isDue = false;
  readonly #clock: Clock;
  /** In the clock's `elapsed()` time. */
  #nextTellAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  noted(event: TroupeEvent): void {
    const before = this.#agents.get(event.agentId);
    noteAgentEvent(this.#agents, event);
    if (this.#agents.get(event.agentId) !== before) this.#changed();
  }

  /** The roots of the trees that it shows. */
  get roots(): ReadonlySet<string> {
    return new Set([...this.#agents.keys()].map(rootOf));
  }

  /** Forgets a tree that was deleted. */
  forget(rootAgentId: string): void {
    const isOfTree = (agentId: string): boolean => rootOf(agentId) === rootAgentId;
    for (const agentId of this.#agents.keys()) if (isOfTree(agentId)) this.#agents.delete(agentId);
    for (const agentId of this.#budgets.keys()) if (isOfTree(agentId)) this.#budgets.delete(agentId);
    for (const [id, { agentId }] of this.#accounts) if (isOfTree(agentId)) this.#accounts.delete(id);
    this.#changed();
  }

  accounted(accounts: readonly Account[]): void {
    for (const account of accounts) this.#accounts.set(account.id, account);
    this.#changed();
  }

  get(): OverviewSnapshot {
    this.#snapshot ??= Object.freeze({
      status: "active",
      output: undefined,
      error: undefined,
      context: stateOf(this.#agents, this.#presentBudgets()),
    });
    return this.#snapshot;
  }

  getSnapshot(): OverviewSnapshot {
    return this.get();
  }

  subscribe(given: Observing<OverviewSnapshot>): { unsubscribe(): void } {
    return this.#observe(this.#told, () => this.get(), given);
  }

  agent(agentId: string): OverviewPart<AgentOverview | undefined> {
    return { ...this.select(({ agents }) => ownOf(agents, agentId)), get: () => this.#agents.get(agentId) };
  }

  budget(agentId: string): OverviewPart<BudgetOverview | undefined> {
    return { ...this.select(({ budgets }) => ownOf(budgets, agentId)), get: () => this.#presentBudgets().get(agentId) };
  }

  select<Value>(
    selector: (state: OverviewState) => Value,
    isEqual: (one: Value, other: Value) => boolean = Object.is,
  ): OverviewPart<Value> {
    return {
      get: () => selector(this.get().context),
      subscribe: (given) => {
        let known = selector(this.get().context);
        const selecting = harmless("a selector of runtime.overview", (state: OverviewState) => {
          const value = selector(state);
          if (!isEqual(known, value)) known = value;
        });
        const part = this.#told.select((state) => {
          selecting(state);
          return known;
        });
        return this.#observe(part, () => known, given);
      },
    };
  }

  #presentBudgets(): ReadonlyMap<string, BudgetOverview> {
    for (const account of this.#accounts.values()) noteAccount(this.#budgets, account);
    this.#accounts.clear();
    return this.#budgets;
  }

  #observe<Value>(
    part: { subscribe(next: () => void): { unsubscribe(): void } },
    valueNow: () => Value,
    given: Observing<Value>,
  ): { unsubscribe(): void } {
    const next = typeof given === "function" ? given : given.next?.bind(given);
    const observer = harmless("an observer of runtime.overview", () => next?.(valueNow()));
    // The first observer is not notified of changes before it subscribed.
    if (this.#observers === 0) this.#told.trigger.moved({ state: this.get().context });
    this.#observers += 1;
    const subscription = part.subscribe(observer);
    let isOpen = true;
    return {
      unsubscribe: () => {
        subscription.unsubscribe();
        if (isOpen) this.#observers -= 1;
        isOpen = false;
      },
    };
  }

  #changed(): void {
    this.#snapshot = undefined;
    if (this.#isDue || this.#observers === 0) return;
    this.#isDue = true;
    const pauseMs = this.#nextTellAt - this.#clock.elapsed();
    if (pauseMs > 0) this.#clock.setDelay(pauseMs, () => this.#tell());
    else setImmediate(() => this.#tell());
  }

  #tell(): void {
    const startedAt = this.#clock.elapsed();
    this.#isDue = false;
    this.#told.trigger.moved({ state: this.get().context });
    const endedAt = this.#clock.elapsed();
    this.#nextTellAt = endedAt + Math.min(LONGEST_PAUSE_MS, (endedAt - startedAt) * PAUSES);
  }
}

/** A copy of the maps as records. */
function stateOf(
  agents: ReadonlyMap<string, AgentOverview>,
  budgets: ReadonlyMap<string, BudgetOverview>,
): OverviewState {
  return Object.freeze({
    agents: Object.freeze(Object.fromEntries(agents)),
    budgets: Object.freeze(Object.fromEntries(budgets)),
  });
}

function ownOf<Value>(record: Readonly<Record<string, Value>>, id: string): Value | undefined {
  return Object.hasOwn(record, id) ? record[id] : undefined;
}

/** Limits and spending of one agent, as last seen by this process. */
export interface BudgetOverview {
  /** The agent's own calls over all its turns, by the name of the model. */
  readonly own: UseByModel;
  /** The same for everything that counts on its accounts, including subagents. */
  readonly tree: UseByModel;
  /** Its accounts with limits, used, reserved and unconfirmed: those of its life, its newest turn and its background children. */
  readonly accounts: Readonly<Record<string, Account>>;
}

export type BudgetOverviews = Readonly<Record<string, BudgetOverview>>;

const none: BudgetOverview = { own: {}, tree: {}, accounts: {} };

/** Applies a changed account. Spending is accumulated from differences, so that accounts of ended turns need not be kept. */
function noteAccount(budgets: Map<string, BudgetOverview>, account: Account): void {
  const { id, agentId, parentId, models } = account;
  const known = budgets.get(agentId) ?? none;
  if (isOver(known, account)) return;
  const holder = parentId === null ? null : agentOfAccount(parentId);
  // A turn under its agent's lifetime account is included in that account's figures.
  const counts = holder !== agentId;
  const more = counts ? difference(models, known.accounts[id]?.models ?? {}) : {};
  const next = deepFreeze({
    own: counts ? sum(known.own, more, 1) : known.own,
    tree: counts ? sum(known.tree, more, 1) : known.tree,
    accounts: keptAccounts(known.accounts, account),
  });
  budgets.set(agentId, next);
  if (!counts || holder === null) return;
  const above = budgets.get(holder) ?? none;
  const own = sum(above.own, more, -1);
  if (own !== above.own) budgets.set(holder, deepFreeze({ ...above, own }));
}

function isTurn({ id }: Account): boolean {
  return id.startsWith("turn:");
}

/** Whether the account belongs to a turn before the newest. */
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

/** The usage added since `before`. */
function difference(now: UseByModel, before: UseByModel): UseByModel {
  // About every second commit settles no call and keeps the object.
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

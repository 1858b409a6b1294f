import { createStore } from "@xstate/store";
import { type Clock, harmless, deepFreeze } from "../../base/index.ts";
import { type Account, addModelUse, type ModelUse, noModelUse, type UseByModel } from "../../budget/index.ts";
import {
  agentOfAccount,
  agentsAfter,
  type AgentOverview,
  noAgents,
  numberOfTurn,
  PersistentMap,
  type TroupeEvent,
} from "../../state/index.ts";

/** All agents of a process with their budgets. */
export interface OverviewState {
  /** The agents that had an event in this process, by id. */
  readonly agents: Readonly<Record<string, AgentOverview>>;
  /** Limits and spending of each agent, by its id. */
  readonly budgets: BudgetOverviews;
}

/** The state at one moment, in the form of a store's snapshot. Its records are made when they are first read. */
export interface OverviewSnapshot {
  /** Always `active`; part of the form of a store's snapshot. */
  readonly status: "active";
  /** Always undefined; part of the form of a store's snapshot. */
  readonly output: undefined;
  /** Always undefined; part of the form of a store's snapshot. */
  readonly error: undefined;
  /** The agents and their budgets. */
  readonly context: OverviewState;
}

/** The ids of the agents of which something changed since the observer was last called. */
export interface OverviewChanges {
  /** Ids of agents whose overview changed. */
  readonly agents: ReadonlySet<string>;
  /** Ids of agents whose budget changed. */
  readonly budgets: ReadonlySet<string>;
}

export type OverviewObserver = (snapshot: OverviewSnapshot, changes: OverviewChanges) => unknown;

/** A part of the overview: its present value, and its changes. */
export interface OverviewPart<Value> {
  /** The value now. */
  get(): Value;
  /** Calls the observer with the new value, at most once per turn of the event loop. */
  subscribe(observer: (value: Value) => unknown): { unsubscribe(): void };
}

/**
 * All agents of this process and their budgets: a value that is always the present one, and observers, which are called
 * after changes, at most once per turn of the event loop, and less often where they take long. Watching costs what
 * changed; only who reads whole records pays for all agents, once a snapshot.
 */
export interface Overview {
  /** The state now. The same object until something changes. */
  getSnapshot(): OverviewSnapshot;
  /** The same as `getSnapshot()`. */
  get(): OverviewSnapshot;
  /** Calls the observer after changes, at most once per turn of the event loop. */
  subscribe(observer: OverviewObserver | { readonly next?: OverviewObserver }): { unsubscribe(): void };
  /** One agent; undefined until its first event. Its observers are called for its changes only. */
  agent(agentId: string): OverviewPart<AgentOverview | undefined>;
  /** The budget of one agent, likewise. */
  budget(agentId: string): OverviewPart<BudgetOverview | undefined>;
  /** Anything computed from the state. Its observers are called when the result is another one, by default by `Object.is`. */
  select<Value>(
    selector: (state: OverviewState) => Value,
    isEqual?: (one: Value, other: Value) => boolean,
  ): OverviewPart<Value>;
}

/** After observers took some time, they are not called for so many times as long, or for the longest pause. */
const PAUSES = 20;
const LONGEST_PAUSE_MS = 1_000;

/** The state as persistent maps, so that a transition costs the same however many agents there are. */
function createTransitions() {
  return createStore({
    context: { agents: noAgents, budgets: PersistentMap.empty<BudgetOverview>() },
    on: {
      noted: (context, { event }: { event: TroupeEvent }) => {
        const agents = agentsAfter(context.agents, event);
        return agents === context.agents ? context : { ...context, agents };
      },
      accounted: (context, { accounts }: { accounts: readonly Account[] }) => {
        const budgets = accounts.reduce(accounted, context.budgets);
        return budgets === context.budgets ? context : { ...context, budgets };
      },
    },
  });
}

/**
 * The overview of a runtime, fed with its events and accounts.
 * Owns: the newest version of the agents and budgets. Does not own: the observers' errors, which are warned of.
 *
 * Invariants
 * 1. An event or a commit costs the same however many agents and observers there are.
 * 2. Reading calls no observer; observers take at most a twentieth of the time.
 * 3. All that is given out is frozen.
 */
export class OverviewStore implements Overview {
  readonly #store = createTransitions();
  /** Accounts that are not in the budgets yet. */
  readonly #accounts = new Map<string, Account>();
  #snapshot: OverviewSnapshot | undefined;
  readonly #observers = new Set<OverviewObserver>();
  readonly #ofAgents = new Map<string, Set<() => void>>();
  readonly #ofBudgets = new Map<string, Set<() => void>>();
  #changes: { readonly agents: Set<string>; readonly budgets: Set<string> } | undefined;
  readonly #clock: Clock;
  /** By the clock's `elapsed()`. */
  #nextTellAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  noted(event: TroupeEvent): void {
    const before = this.#present.agents;
    this.#store.send({ type: "noted", event });
    if (this.#present.agents === before) return;
    const { agents } = this.#changed();
    agents.add(event.agentId);
    if (event.type === "subagent.spawned") agents.add(event.childId);
  }

  /** Keeps the last of each account until somebody looks, because each commit changes those of all agents above too. */
  accounted(accounts: readonly Account[]): void {
    this.#changed();
    for (const account of accounts) this.#accounts.set(account.id, account);
  }

  getSnapshot(): OverviewSnapshot {
    if (this.#snapshot === undefined) {
      const budgets = this.#presentBudgets();
      this.#snapshot = snapshotOf(this.#present.agents, budgets);
    }
    return this.#snapshot;
  }

  get(): OverviewSnapshot {
    return this.getSnapshot();
  }

  subscribe(given: OverviewObserver | { readonly next?: OverviewObserver }): { unsubscribe(): void } {
    const next: OverviewObserver | undefined = typeof given === "function" ? given : given.next?.bind(given);
    const observer = harmless("an observer of runtime.overview", (...parts: Parameters<OverviewObserver>) =>
      next?.(...parts),
    );
    this.#observers.add(observer);
    return { unsubscribe: () => this.#observers.delete(observer) };
  }

  agent(agentId: string): OverviewPart<AgentOverview | undefined> {
    const get = (): AgentOverview | undefined => this.#present.agents.get(agentId);
    return { get, subscribe: (observer) => subscribeTo(this.#ofAgents, agentId, () => observer(get())) };
  }

  budget(agentId: string): OverviewPart<BudgetOverview | undefined> {
    const get = (): BudgetOverview | undefined => this.#presentBudgets().get(agentId);
    return { get, subscribe: (observer) => subscribeTo(this.#ofBudgets, agentId, () => observer(get())) };
  }

  select<Value>(
    selector: (state: OverviewState) => Value,
    isEqual: (one: Value, other: Value) => boolean = Object.is,
  ): OverviewPart<Value> {
    const get = (): Value => selector(this.getSnapshot().context);
    const subscribe: OverviewPart<Value>["subscribe"] = (observer) => {
      let known = get();
      return this.subscribe(({ context }) => {
        const value = selector(context);
        if (isEqual(known, value)) return undefined;
        known = value;
        return observer(value);
      });
    };
    return { get, subscribe };
  }

  get #present() {
    return this.#store.getSnapshot().context;
  }

  #presentBudgets(): PersistentMap<BudgetOverview> {
    const before = this.#present.budgets;
    if (this.#accounts.size === 0) return before;
    const accounts = [...this.#accounts.values()];
    this.#accounts.clear();
    this.#store.send({ type: "accounted", accounts });
    const { budgets } = this.#present;
    const holders = accounts.flatMap(({ agentId, parentId }) => [
      agentId,
      ...(parentId === null ? [] : [agentOfAccount(parentId)]),
    ]);
    for (const id of holders) if (budgets.get(id) !== before.get(id)) this.#changes?.budgets.add(id);
    return budgets;
  }

  /** The changes that observers have not been told of. */
  #changed() {
    this.#snapshot = undefined;
    if (this.#changes === undefined) {
      this.#changes = { agents: new Set(), budgets: new Set() };
      const pauseMs = this.#nextTellAt - this.#clock.elapsed();
      if (pauseMs > 0) this.#clock.setDelay(pauseMs, () => this.#tell());
      else setImmediate(() => this.#tell());
    }
    return this.#changes;
  }

  #tell(): void {
    const startedAt = this.#clock.elapsed();
    this.#presentBudgets();
    const changes = this.#changes;
    this.#changes = undefined;
    if (changes === undefined) return;
    tellEach(this.#ofAgents, changes.agents);
    tellEach(this.#ofBudgets, changes.budgets);
    if (this.#observers.size > 0) {
      const snapshot = this.getSnapshot();
      for (const observer of this.#observers) observer(snapshot, changes);
    }
    const endedAt = this.#clock.elapsed();
    this.#nextTellAt = endedAt + Math.min(LONGEST_PAUSE_MS, (endedAt - startedAt) * PAUSES);
  }
}

function snapshotOf(agents: typeof noAgents, budgets: PersistentMap<BudgetOverview>): OverviewSnapshot {
  const context = Object.freeze({
    get agents() {
      return agents.record();
    },
    get budgets() {
      return budgets.record();
    },
  });
  return Object.freeze({ status: "active", output: undefined, error: undefined, context });
}

function subscribeTo(observers: Map<string, Set<() => void>>, id: string, tell: () => unknown) {
  const observer = harmless("an observer of runtime.overview", tell);
  const others = observers.get(id) ?? new Set();
  observers.set(id, others.add(observer));
  return {
    unsubscribe: () => {
      others.delete(observer);
      if (others.size === 0 && observers.get(id) === others) observers.delete(id);
    },
  };
}

function tellEach(observers: ReadonlyMap<string, ReadonlySet<() => void>>, ids: ReadonlySet<string>): void {
  if (observers.size === 0) return;
  for (const id of ids) for (const observer of observers.get(id) ?? []) observer();
}

/** Limits and spending of one agent, as this process last saw them. */
export interface BudgetOverview {
  /** Its own calls over all its turns, by the name of the model. */
  readonly own: UseByModel;
  /** The same with everything that counts on its accounts, subagents included. */
  readonly tree: UseByModel;
  /**
   * Its accounts with limits, used, reserved and unconfirmed: of its life, its newest turn, its background children.
   */
  readonly accounts: Readonly<Record<string, Account>>;
}

export type BudgetOverviews = Readonly<Record<string, BudgetOverview>>;

const none: BudgetOverview = { own: {}, tree: {}, accounts: {} };

/**
 * The budgets after an account has changed. Spending is added up by differences, so that accounts of ended turns need not
 * be kept.
 */
function accounted(budgets: PersistentMap<BudgetOverview>, account: Account): PersistentMap<BudgetOverview> {
  const { id, agentId, parentId, models } = account;
  const known = budgets.get(agentId) ?? none;
  if (isOver(known, account)) return budgets;
  const holder = parentId === null ? null : agentOfAccount(parentId);
  // A turn under its agent's lifetime account is included in that account's figures.
  const counts = holder !== agentId;
  const more = counts ? difference(models, known.accounts[id]?.models ?? {}) : {};
  const next = deepFreeze({
    own: counts ? sum(known.own, more, 1) : known.own,
    tree: counts ? sum(known.tree, more, 1) : known.tree,
    accounts: keptAccounts(known.accounts, account),
  });
  const after = budgets.with(agentId, next);
  if (!counts || holder === null) return after;
  const above = after.get(holder) ?? none;
  const own = sum(above.own, more, -1);
  if (own === above.own) return after;
  return after.with(holder, deepFreeze({ ...above, own }));
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

/** The use that was added since `before`. */
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

import { AccountFold } from "./account-fold.ts";
import { type AgentMoment, createdMoment, foldAgentEntry } from "./agent-moment.ts";
import { type AccountTerms, type StoredTerms, termsOf } from "./account-at.ts";
import { isInherited, type RunLog } from "./run-log.ts";

/** A run after its first `count` entries. */
export interface RunMoment {
  readonly count: number;
  /** The cursor of the last entry; 0 before the first. */
  readonly cursor: number;
  readonly time: number;
  /** By index in the log; `undefined` for an agent that was not created yet. */
  readonly agents: readonly (AgentMoment | undefined)[];
  readonly accounts: Pick<
    AccountFold,
    "account" | "accounts" | "chain" | "inFlight" | "waiting" | "refusals" | "refusalOf" | "refusalCount"
  >;
}

/** A state from which folding can continue. */
export interface RunState {
  readonly count: number;
  readonly agents: readonly (AgentMoment | undefined)[];
  readonly accounts: AccountFold;
}

interface State {
  count: number;
  agents: (AgentMoment | undefined)[];
  accounts: AccountFold;
}

/** Entries between two keyframes; folding them takes about 5 ms. */
const KEYFRAME_EVERY = 2_048;

/**
 * The state of a run at any moment. The newest state is updated as entries are added; earlier ones are folded from
 * keyframes.
 * Owns: keyframes. Does not own: the log.
 *
 * 1. The agent states in a keyframe are shared with the moments around it and never change.
 * 2. A moment is valid until the next call of `at`, which may continue folding into the same lists.
 * 3. The newest state never goes back: a new entry is folded once, even while the page shows an earlier moment.
 */
export class RunMoments {
  readonly #log: RunLog;
  #keyframes: State[];
  #newest: State;
  #past: State;
  readonly #learned = new Map<string, AccountTerms>();
  /** Total number of entries folded. */
  folded = 0;

  /** `start`: the state before the first entry of the log. */
  constructor(log: RunLog, start: RunState = { count: 0, agents: [], accounts: new AccountFold() }) {
    this.#log = log;
    this.#keyframes = [copyOf(start)];
    this.#newest = copyOf(start);
    this.#past = copyOf(start);
  }

  /** Number of entries in the newest state. */
  get count(): number {
    return this.#newest.count;
  }

  /** Folds at most `entries` entries into the newest state. Returns whether more are left. */
  foldOn(entries: number): boolean {
    this.#fold(this.#newest, Math.min(this.#log.length, this.#newest.count + entries));
    return this.#newest.count < this.#log.length;
  }

  /**
   * Adds the terms of stored accounts that the journal lacks. Returns true if returned moments are no longer correct; the
   * entries are then folded again.
   */
  learn(stored: readonly StoredTerms[]): boolean {
    const more = stored.map(termsOf).filter(({ id, limits }) => !isSame(this.#learned.get(id)?.limits, limits));
    for (const one of more) this.#learned.set(one.id, one);
    const { accounts, agents } = this.#newest;
    const isWrong = more.some(({ id, agentId, limits }) => {
      const account = accounts.account(id);
      if (account) return !isSame(account.limits, limits);
      return id === `agent:${agentId}` && agents[this.#log.indexOfAgent(agentId)] !== undefined;
    });
    accounts.learn(more);
    const [first] = this.#keyframes;
    if (!isWrong || !first) return false;
    this.#keyframes = [first];
    this.#newest = copyOf(first);
    this.#past = copyOf(first);
    return true;
  }

  /** The state after `count` entries, from which another log can continue. */
  stateAt(count: number): RunState {
    return copyOf(this.#stateAt(count));
  }

  /** Drops the states before an entry index. Call it before the log drops its entries. */
  drop(until: number): void {
    const first = copyOf(this.#stateAt(until));
    this.#keyframes = [first, ...this.#keyframes.filter(({ count }) => count > until)];
    this.#past = copyOf(first);
  }

  at(count: number): RunMoment {
    const state = this.#stateAt(count);
    const isStart = state.count === this.#log.first;
    return {
      count: state.count,
      cursor: isStart ? this.#log.cursorBefore : this.#log.cursorOf(state.count - 1),
      time: isStart ? this.#log.timeOf(this.#log.first) : this.#log.timeOf(state.count - 1),
      agents: state.agents,
      accounts: state.accounts,
    };
  }

  #stateAt(count: number): State {
    const target = Math.max(this.#log.first, Math.min(count, this.#log.length));
    if (target >= this.#newest.count) return this.#fold(this.#newest, target);
    const keyframe = this.#keyframes.findLast((one) => one.count <= target);
    const isBehind = keyframe !== undefined && this.#past.count < keyframe.count;
    if (keyframe && (isBehind || this.#past.count > target)) this.#past = copyOf(keyframe);
    return this.#fold(this.#past, target);
  }

  #fold(state: State, target: number): State {
    const log = this.#log;
    while (state.count < target) {
      const entry = log.entry(state.count);
      const agent = log.agentOf(state.count);
      if (!entry) return state;
      state.agents[agent] = foldAgentEntry(state.agents[agent] ?? createdMoment(entry.at), entry);
      if (entry.type === "child.spawned") {
        const child = log.indexOfAgent(entry.childId);
        if (child >= 0) state.agents[child] ??= createdMoment(entry.at);
      }
      if (log.agents[0]?.origin && !isInherited(log, entry)) state.accounts.beginFork();
      state.accounts.apply(log.agents[agent]?.agentId ?? "", entry);
      state.count += 1;
      this.folded += 1;
      const isDue = state.count >= (this.#keyframes.at(-1)?.count ?? 0) + KEYFRAME_EVERY;
      if (isDue && state === this.#newest) this.#keyframes.push(copyOf(state));
    }
    return state;
  }
}

function isSame(one: AccountTerms["limits"] | undefined, other: AccountTerms["limits"]): boolean {
  if (!one) return false;
  const names = new Set([...Object.keys(one), ...Object.keys(other)]) as Set<keyof AccountTerms["limits"]>;
  return [...names].every((name) => one[name] === other[name]);
}

function copyOf({ count, agents, accounts }: RunState): State {
  return { count, agents: [...agents], accounts: accounts.clone() };
}

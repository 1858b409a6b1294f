import { AccountFold } from "./account-fold.ts";
import { type AgentMoment, createdMoment, foldAgentEntry } from "./agent-moment.ts";
import type { AccountTerms } from "./account-at.ts";
import type { RunLog } from "./run-log.ts";

/** A run after its first `count` entries. */
export interface RunMoment {
  readonly count: number;
  /** The cursor of the last entry; 0 before the first. */
  readonly cursor: number;
  readonly time: number;
  /** By their places in the log; undefined: not there yet. */
  readonly agents: readonly (AgentMoment | undefined)[];
  readonly accounts: Pick<AccountFold, "account" | "accounts" | "inFlight" | "waiting" | "refusals" | "refusalCount">;
}

interface State {
  count: number;
  agents: (AgentMoment | undefined)[];
  accounts: AccountFold;
}

/** Entries between two keyframes: about what folds within 5 ms. */
const KEYFRAME_EVERY = 2_048;

/**
 * The state of a run at any of its moments, forwards entry by entry, backwards from keyframes.
 * Owns: keyframes. Does not own: the log.
 *
 * 1. The states in a keyframe are shared with the moments around it; none is ever changed.
 * 2. A moment that was given is valid until the next one is asked for: both are the same lists, folded further.
 */
export class RunMoments {
  readonly #log: RunLog;
  readonly #keyframes: State[] = [{ count: 0, agents: [], accounts: new AccountFold() }];
  #now: State = { count: 0, agents: [], accounts: new AccountFold() };
  #learned: readonly AccountTerms[] = [];

  constructor(log: RunLog) {
    this.#log = log;
  }

  /**
   * Takes those terms of stored accounts that the journal does not have. True if there were some: moments that were given are
   * no longer right.
   */
  learn(terms: readonly AccountTerms[]): boolean {
    const { accounts } = this.at(this.#log.length);
    const more = terms.filter(({ id, limits }) => !isSame(accounts.account(id)?.limits, limits));
    if (more.length === 0) return false;
    const first = freshState();
    first.accounts.learn([...this.#learned, ...more]);
    this.#learned = [...this.#learned, ...more];
    this.#keyframes.splice(0, this.#keyframes.length, first);
    this.#now = copyOf(first);
    return true;
  }

  at(count: number): RunMoment {
    const target = Math.max(0, Math.min(count, this.#log.length));
    const place = Math.min(Math.floor(target / KEYFRAME_EVERY), this.#keyframes.length - 1);
    const keyframe = this.#keyframes[place] ?? freshState();
    if (this.#now.count > target || this.#now.count < keyframe.count) this.#now = copyOf(keyframe);
    this.#foldTo(target);
    const last = this.#now.count - 1;
    return {
      count: this.#now.count,
      cursor: last < 0 ? 0 : this.#log.cursorOf(last),
      time: last < 0 ? this.#log.startedAt : this.#log.timeOf(last),
      agents: this.#now.agents,
      accounts: this.#now.accounts,
    };
  }

  #foldTo(target: number): void {
    const now = this.#now;
    const log = this.#log;
    while (now.count < target) {
      const entry = log.entries[now.count];
      const agent = log.agentOf(now.count);
      if (!entry) return;
      now.agents[agent] = foldAgentEntry(now.agents[agent] ?? createdMoment(entry.at), entry);
      if (entry.type === "child.spawned") {
        const child = log.indexOfAgent(entry.childId);
        if (child >= 0) now.agents[child] ??= createdMoment(entry.at);
      }
      now.accounts.apply(log.agents[agent]?.agentId ?? "", entry);
      now.count += 1;
      if (now.count === this.#keyframes.length * KEYFRAME_EVERY) this.#keyframes.push(copyOf(now));
    }
  }
}

function isSame(one: AccountTerms["limits"] | undefined, other: AccountTerms["limits"]): boolean {
  if (!one) return false;
  const names = new Set([...Object.keys(one), ...Object.keys(other)]) as Set<keyof AccountTerms["limits"]>;
  return [...names].every((name) => one[name] === other[name]);
}

function freshState(): State {
  return { count: 0, agents: [], accounts: new AccountFold() };
}

function copyOf({ count, agents, accounts }: State): State {
  return { count, agents: [...agents], accounts: accounts.clone() };
}

import { type AccountMoment, foldAccountEntry, RunAccounts } from "./account-moment.ts";
import { type AgentMoment, createdMoment, foldAgentEntry } from "./agent-moment.ts";
import type { RunLog } from "./run-log.ts";

/** A run after its first `count` entries. By the places of agents and accounts; undefined: not there yet. */
export interface RunMoment {
  readonly count: number;
  /** The cursor of the last entry; 0 before the first. */
  readonly cursor: number;
  readonly time: number;
  readonly agents: readonly (AgentMoment | undefined)[];
  readonly accounts: readonly (AccountMoment | undefined)[];
}

interface Keyframe {
  readonly count: number;
  readonly agents: (AgentMoment | undefined)[];
  readonly accounts: (AccountMoment | undefined)[];
}

/** Entries between two keyframes: about what folds within 2 ms. */
const KEYFRAME_EVERY = 1_024;

/**
 * The state of a run at any of its moments, forwards entry by entry, backwards from keyframes.
 * Owns: keyframes, the accounts of the run. Does not own: the log.
 *
 * 1. The states in a keyframe are shared with the moments around it; none is ever changed.
 * 2. A moment that was given is valid until the next one is asked for: both are the same lists, folded further.
 */
export class RunMoments {
  readonly accounts = new RunAccounts();
  readonly #log: RunLog;
  readonly #keyframes: Keyframe[] = [{ count: 0, agents: [], accounts: [] }];
  #now: { count: number; agents: (AgentMoment | undefined)[]; accounts: (AccountMoment | undefined)[] } = {
    count: 0,
    agents: [],
    accounts: [],
  };
  /** Entries whose accounts are noted. */
  #noted = 0;

  constructor(log: RunLog) {
    this.#log = log;
  }

  at(count: number): RunMoment {
    const target = Math.max(0, Math.min(count, this.#log.length));
    this.#noteAccounts();
    const place = Math.min(Math.floor(target / KEYFRAME_EVERY), this.#keyframes.length - 1);
    const keyframe = this.#keyframes[place] as Keyframe;
    if (this.#now.count > target || this.#now.count < keyframe.count) {
      this.#now = { count: keyframe.count, agents: [...keyframe.agents], accounts: [...keyframe.accounts] };
    }
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

  #noteAccounts(): void {
    const { entries, agents } = this.#log;
    for (; this.#noted < entries.length; this.#noted += 1) {
      const entry = entries[this.#noted];
      const agent = agents[this.#log.agentOf(this.#noted)];
      if (entry?.type === "turn.started" && agent) this.accounts.note(agent, entry);
    }
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
      foldAccountEntry(this.accounts, now.accounts, entry);
      now.count += 1;
      if (now.count === this.#keyframes.length * KEYFRAME_EVERY) {
        this.#keyframes.push({ count: now.count, agents: [...now.agents], accounts: [...now.accounts] });
      }
    }
  }
}

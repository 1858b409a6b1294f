import { setImmediate as loopTurn } from "node:timers/promises";
import type { AgentRequest } from "../../src/index.ts";
import type { Entry, EntryType } from "../../src/state/index.ts";
import type { Stores } from "../../src/stores/index.ts";

/** Turns of the event loop for which a commit is on its way to the stores, and its answer on the way back. */
const WAY = 3;

type Fits = (entry: Entry, agentId: string) => boolean;

/**
 * Stores whose commits take their time, and what they have committed: they show what starts before its intent is committed.
 * Owns: the committed entries, and the faults that were found.
 */
export class CommitWatch {
  readonly #committed: { readonly agentId: string; readonly entry: Entry }[] = [];
  readonly #requests = new Map<string, AgentRequest["kind"]>();
  readonly #seen = new Map<string, number>();
  readonly faults: string[] = [];

  /** The same stores, watched. */
  readonly through = (stores: Stores): Stores => {
    const commit: Stores["commit"] = async (batches, ...rest) => {
      for (let turn = 0; turn < WAY; turn += 1) await loopTurn();
      const outcomes = await stores.commit(batches, ...rest);
      for (const [index, { key, requests }] of batches.entries()) {
        const outcome = outcomes[index];
        if (outcome?.type !== "committed") continue;
        for (const entry of outcome.entries) this.#committed.push({ agentId: key.agentId, entry });
        for (const { requestId, kind } of requests) this.#requests.set(requestId, kind);
      }
      for (let turn = 0; turn < WAY; turn += 1) await loopTurn();
      return outcomes;
    };
    return new Proxy(stores, {
      get: (target, name: keyof Stores) => {
        if (name === "commit") return commit;
        const member: unknown = target[name];
        return typeof member === "function" ? member.bind(target) : member;
      },
    });
  };

  /** The kinds of effects that have started, sorted. */
  get kinds(): string[] {
    return [...this.#seen.keys()].toSorted();
  }

  /** An effect starts whose intent is such an entry. */
  starts(kind: string, type: EntryType, fits: Fits = () => true): void {
    this.#note(kind, this.#count(type, fits) > 0);
  }

  /** The next effect of the kind starts: so many intents must be committed by now. */
  startsNext(kind: string, types: readonly EntryType[], fits: Fits = () => true): void {
    const before = this.#seen.get(kind) ?? 0;
    this.#note(kind, types.reduce((sum, type) => sum + this.#count(type, fits), 0) > before);
  }

  /** A request is shown to people. */
  shows(requestId: string): void {
    this.#note("request", this.#requests.has(requestId));
  }

  #count(type: EntryType, fits: Fits): number {
    return this.#committed.filter(({ agentId, entry }) => entry.type === type && fits(entry, agentId)).length;
  }

  #note(kind: string, isCommitted: boolean): void {
    this.#seen.set(kind, (this.#seen.get(kind) ?? 0) + 1);
    if (!isCommitted) this.faults.push(`${kind} has started before its intent was committed`);
  }
}

import type { Stores } from "../../src/index.ts";
import type { InboxItem } from "../../src/state/index.ts";
import type { ForeignWrites } from "../../src/stores/index.ts";
import type { SeededRandom } from "../../src/testing/simulation/seeded-random.ts";

export interface Disturbances {
  /** Share of items that are missing from the first read. */
  readonly dropped: number;
  /** Share of items that are returned twice. */
  readonly doubled: number;
  /** Share of reads that return an earlier item again, whether it was handled or not. */
  readonly late: number;
  readonly reordered: boolean;
}

export interface Disturbed {
  items: number;
  dropped: number;
  doubled: number;
  late: number;
  reordered: number;
}

/** Items for one agent keep their order, as in the stores: a pause and its end are never swapped. */
const commands: ReadonlySet<InboxItem["kind"]> = new Set(["turn", "pause", "resume", "abort"]);

/**
 * Stores with disturbed inbox reads: items are delayed, duplicated, repeated and reordered. Only reads are disturbed; the
 * stored data is correct, and items that an earlier owner handled are gone. A reader that missed an item reads again, as
 * with its next heartbeat.
 */
export class DisturbedInbox {
  readonly stores: Stores;
  readonly counts: Disturbed = { items: 0, dropped: 0, doubled: 0, late: 0, reordered: 0 };
  /** Increases with every commit. */
  activity = 0;
  readonly #random: SeededRandom;
  readonly #disturbances: Disturbances;
  readonly #listeners = new Set<(writes: ForeignWrites) => void>();
  readonly #seen = new Map<string, Map<string, InboxItem>>();

  constructor(plain: Stores, disturbances: Disturbances, random: SeededRandom) {
    this.#random = random;
    this.#disturbances = disturbances;
    const changed: Pick<Stores, "acquire" | "inbox" | "commit" | "onForeignWrite"> = {
      acquire: async (key, ...given) => {
        const outcome = await plain.acquire(key, ...given);
        if (outcome.type === "acquired") this.#seen.get(key.agentId)?.clear();
        return outcome;
      },
      inbox: async (key) => this.#disturb(key.agentId, await plain.inbox(key)),
      commit: async (...given) => {
        const outcomes = await plain.commit(...given);
        this.activity += 1;
        return outcomes;
      },
      onForeignWrite: (listener) => {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
      },
    };
    this.stores = new Proxy(plain, {
      get: (target, name: keyof Stores) => {
        if (name in changed) return changed[name as keyof typeof changed];
        const member = target[name];
        return typeof member === "function" ? member.bind(target) : member;
      },
    });
  }

  #disturb(agentId: string, items: readonly InboxItem[]): InboxItem[] {
    const { dropped, doubled, late, reordered } = this.#disturbances;
    const seen = this.#seen.get(agentId) ?? new Map<string, InboxItem>();
    this.#seen.set(agentId, seen);
    const earlier = [...seen.values()];
    const given: InboxItem[] = [];
    let isHeldUp = false;
    for (const item of items) {
      const isNew = !seen.has(item.key);
      seen.set(item.key, item);
      if (isNew) this.counts.items += 1;
      const isCommand = commands.has(item.kind);
      if ((isNew && this.#random.next() < dropped) || (isCommand && isHeldUp)) {
        isHeldUp ||= isCommand;
        this.counts.dropped += 1;
        this.lookAgain();
        continue;
      }
      given.push(item);
      if (this.#random.next() >= doubled) continue;
      this.counts.doubled += 1;
      given.push(item);
    }
    if (earlier.length > 0 && this.#random.next() < late) {
      this.counts.late += 1;
      given.push(this.#random.pick(earlier));
    }
    return reordered ? this.#shuffled(given) : given;
  }

  #shuffled(items: readonly InboxItem[]): InboxItem[] {
    if (items.length < 2) return [...items];
    this.counts.reordered += 1;
    const left = [...items];
    const shuffled = items.flatMap(() => left.splice(this.#random.between(0, left.length - 1), 1));
    const inOrder = items.filter(({ kind }) => commands.has(kind));
    return shuffled.flatMap((item) => (commands.has(item.kind) ? inOrder.splice(0, 1) : [item]));
  }

  /** Makes all readers read their inboxes again after a moment. */
  lookAgain(): void {
    setImmediate(() => {
      for (const listener of this.#listeners) listener("any");
    });
  }
}

import type { InboxItem } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { Activation } from "../agent/activation.ts";
import type { ChildResults } from "./child-results.ts";
import { takeItem } from "../agent/intake.ts";

/**
 * Takes the inboxes of live agents in.
 * Owns: which items an activation has taken. Does not own: the inboxes, or what an item becomes.
 *
 * Invariant: an item is taken at most once per activation; it leaves the inbox with the commit that holds its entry.
 */
export class InboxIntake {
  readonly #stores: Stores;
  readonly #children: ChildResults;
  readonly #taken = new WeakMap<Activation, Set<string>>();

  constructor(stores: Stores, children: ChildResults) {
    this.#stores = stores;
    this.#children = children;
  }

  /** Takes in what the inbox holds; gives how much. A child is brought to `ready` by the first thing that comes for it. */
  async intake(activation: Activation, wakeUp: (activation: Activation) => void): Promise<number> {
    const items = await this.#stores.inbox(activation.key);
    if (items.length === 0 || activation.isLost) return 0;
    let taken = 0;
    if (activation.identity.parentAgentId !== null) wakeUp(activation);
    // What comes later may be what an earlier one waits for: the end of a pause lets a turn begin.
    for (let isMoving = true; isMoving; ) {
      const moved = items.filter(
        (item) => !this.#isBehind(activation, item, items) && this.take(activation, item),
      ).length;
      taken += moved;
      isMoving = moved > 0;
    }
    return taken;
  }

  /** Turns begin in their order: what ends a pause may stand behind the first of them, and before the next one. */
  #isBehind(activation: Activation, item: InboxItem, items: readonly InboxItem[]): boolean {
    if (item.kind !== "turn") return false;
    const taken = this.#taken.get(activation);
    return items.some((one) => one.kind === "turn" && one.number < item.number && !taken?.has(one.key));
  }

  /** Takes one item; false when it was taken already or is not its turn yet. */
  take(activation: Activation, item: InboxItem): boolean {
    const taken = this.#taken.get(activation) ?? new Set();
    this.#taken.set(activation, taken);
    if (taken.has(item.key) || activation.isLost) return false;
    if (!takeItem(activation, item)) return false;
    taken.add(item.key);
    if (item.kind === "child.ended") this.#children.settle(item.childId, { status: item.outcome, text: item.text });
    return true;
  }
}

import type { Waiters } from "../../base/index.ts";
import type { InboxItem } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { SpawnedChild } from "../../tools/index.ts";
import type { Activation } from "../agent/activation.ts";
import { takeItem, wakeUp } from "../agent/intake.ts";
import type { Residences } from "./residence.ts";

/**
 * Drains the inboxes of activations.
 * Does not own: the inboxes, when they are drained, or what becomes of an item.
 *
 * Invariant: an item is taken at most once per activation; it leaves the inbox with the commit that holds its entry.
 */
export class Inbox {
  readonly #stores: Pick<Stores, "inbox">;
  readonly #residences: Residences<Activation>;
  readonly #children: ChildResults;

  constructor(stores: Pick<Stores, "inbox">, residences: Residences<Activation>, children: ChildResults) {
    this.#stores = stores;
    this.#residences = residences;
    this.#children = children;
  }

  /** Takes what the inbox holds; gives how many items. A child becomes `ready` with the first thing that comes for it. */
  async drain(activation: Activation): Promise<number> {
    const items = await this.#stores.inbox(activation.key);
    if (items.length === 0 || activation.isLost) return 0;
    if (activation.identity.parentAgentId !== null) wakeUp(activation);
    let taken = 0;
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

  /** Takes one item; false when it was taken already, is not its turn yet, or the agent is not here any more. */
  take(activation: Activation, item: InboxItem): boolean {
    const taken = this.#residences.stay(activation)?.taken;
    if (!taken || taken.has(item.key) || activation.isLost) return false;
    if (!takeItem(activation, item)) return false;
    taken.add(item.key);
    if (item.kind === "child.ended") this.#children.resolve(item.childId, { status: item.outcome, text: item.text });
    return true;
  }

  /** Turns begin in their order: what ends a pause may lie behind the first of them, and before the next one. */
  #isBehind(activation: Activation, item: InboxItem, items: readonly InboxItem[]): boolean {
    if (item.kind !== "turn") return false;
    const taken = this.#residences.stay(activation)?.taken;
    return items.some((one) => one.kind === "turn" && one.number < item.number && !taken?.has(one.key));
  }
}

/** Code that waits for the children it spawned, by their ids. */
export type ChildResults = Waiters<string, Awaited<SpawnedChild["result"]>>;

import { processContext, type Waiters } from "../../base/index.ts";
import type { InboxItem } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { SpawnedChild } from "../../tools/index.ts";
import type { Activation } from "../agent/activation.ts";
import { takeItem, wakeUp } from "../agent/intake.ts";
import type { Placements } from "./placements.ts";

/**
 * Drains the inboxes of activations.
 * Does not own: the inboxes, when they are drained, or the handling of an item.
 *
 * Invariants
 * 1. An item is taken at most once per activation; it leaves the inbox with the commit that contains its entry.
 * 2. An inbox is read once at a time: concurrent callers share the next read, so that a thousand posts at one moment cause two
 *    reads.
 */
export class Inbox {
  readonly #stores: Pick<Stores, "inbox">;
  readonly #placements: Placements<Activation>;
  readonly #children: ChildResults;
  readonly #running = new Map<Activation, Running>();

  constructor(stores: Pick<Stores, "inbox">, placements: Placements<Activation>, children: ChildResults) {
    this.#stores = stores;
    this.#placements = placements;
    this.#children = children;
  }

  /** Takes the items in the inbox; returns how many. The first item makes a child `ready`. */
  drain(activation: Activation): Promise<number> {
    const running = this.#running.get(activation);
    const start = (): Promise<number> => this.#start(activation);
    return running ? (running.next ??= running.end.then(start, start)) : start();
  }

  #start(activation: Activation): Promise<number> {
    // Items belong to other callers than the one that started the read.
    const end = processContext.run(() => this.#drain(activation));
    const running: Running = { end, next: undefined };
    this.#running.set(activation, running);
    const leave = (): void => {
      if (!running.next) this.#running.delete(activation);
    };
    end.then(leave, leave);
    return end;
  }

  async #drain(activation: Activation): Promise<number> {
    const look = activation.nextLook();
    const items = await this.#stores.inbox(activation.key);
    if (items.length === 0) activation.setUntaken([], look);
    if (items.length === 0 || activation.isLost) return 0;
    if (activation.identity.parentAgentId !== null) wakeUp(activation);
    let taken = 0;
    // A later item may unblock an earlier one: the end of a pause lets a turn start.
    for (let isMoving = true; isMoving; ) {
      const moved = items.filter(
        (item) => !this.#isBehind(activation, item, items) && this.#take(activation, item),
      ).length;
      taken += moved;
      isMoving = moved > 0;
    }
    if (taken > 0) activation.isUsed = true;
    activation.setUntaken(
      items.flatMap(({ key }) => (activation.taken.has(key) ? [] : [key])),
      look,
    );
    return taken;
  }

  /** Takes one item without reading the inbox; returns false if it cannot be taken yet: the next read then finds it. */
  take(activation: Activation, item: InboxItem): boolean {
    if (this.#take(activation, item)) return true;
    const { untaken } = activation;
    const isTaken = activation.taken.has(item.key) || !this.#placements.isHere(activation);
    if (!isTaken && !untaken.includes(item.key)) activation.setUntaken([...untaken, item.key], activation.nextLook());
    return false;
  }

  /** Returns false if the item was already taken, cannot be taken yet, or the agent has left this process. */
  #take(activation: Activation, item: InboxItem): boolean {
    const { taken } = activation;
    if (!this.#placements.isHere(activation) || activation.isLost) return false;
    if (taken.has(item.key)) {
      // A caller that aborts a turn which is already ending posts the same item again, perhaps after the first has left the
      // inbox.
      if (item.kind === "abort") activation.writer.acknowledge(item.key);
      return false;
    }
    if (!takeItem(activation, item)) return false;
    taken.add(item.key);
    if (item.kind === "lease.wanted") this.#placements.report(activation, { type: "kept.ended" });
    if (item.kind === "child.ended") this.#children.resolve(item.childId, { status: item.outcome, text: item.text });
    return true;
  }

  /**
   * Whether an earlier turn is still in the inbox. Turns start in order, even if the end of a pause lies between them.
   */
  #isBehind(activation: Activation, item: InboxItem, items: readonly InboxItem[]): boolean {
    if (item.kind !== "turn") return false;
    const { taken } = activation;
    return items.some((one) => one.kind === "turn" && one.number < item.number && !taken.has(one.key));
  }
}

/** A drain in progress. */
interface Running {
  readonly end: Promise<number>;
  /** The next drain, if a caller has requested one. */
  next: Promise<number> | undefined;
}

/** Waiters in user code for the children that it spawned, by child id. */
export type ChildResults = Waiters<string, Awaited<SpawnedChild["result"]>>;

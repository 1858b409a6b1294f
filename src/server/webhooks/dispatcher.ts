import { TroupeError } from "../../errors/index.ts";
import { type Runtime, watchTreeOf } from "../../runtime/index.ts";
import { type DeliveryDependencies, TreeDelivery } from "./tree-delivery.ts";

/** How often a server asks the store for trees that are due, in milliseconds. */
const SWEEP_MS = 5_000;
const TREES_AT_A_TIME = 100;

/** A tree with webhooks, as far as this server knows. */
interface WatchedTree {
  readonly delivery: TreeDelivery;
  readonly stopWatching: () => void;
  /** The work on the tree; `undefined` while there is none. */
  working: Promise<void> | undefined;
  /** Something was written since the work began. */
  isDue: boolean;
  cancelTimer: () => void;
}

/**
 * Notices that there is something to tell in the trees of one runtime: rows are written here or elsewhere, the time of a
 * retry has come, or the server that had told a tree is gone, which the regular look at the store finds out.
 * Owns: which trees are watched and when they are looked at. Does not own: what is told.
 *
 * Invariants
 * 1. One delivery of a tree at a time, and another one after it for what was written meanwhile.
 * 2. A tree without webhooks costs nothing.
 */
export class Dispatcher {
  readonly #runtime: Runtime;
  readonly #at: DeliveryDependencies;
  readonly #trees = new Map<string, WatchedTree>();
  #cancelSweep: () => void = () => undefined;
  #sweeping: Promise<void> | undefined;
  #isClosed = false;

  constructor(runtime: Runtime, dependencies: DeliveryDependencies) {
    this.#runtime = runtime;
    this.#at = dependencies;
  }

  start(): void {
    this.#sweeping = this.#sweep();
  }

  /** Tells what there is to tell in a tree. */
  look(rootAgentId: string): void {
    if (this.#isClosed) return;
    const tree = this.#watched(rootAgentId);
    tree.isDue = true;
    tree.delivery.nudge();
    tree.working ??= this.#work(rootAgentId, tree);
  }

  /** Ends what `closing` of the dependencies does not end at once, and gives the claims back. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelSweep();
    const trees = [...this.#trees.values()];
    for (const tree of trees) {
      tree.stopWatching();
      tree.cancelTimer();
    }
    await Promise.all([this.#sweeping, ...trees.map(({ working }) => working)]);
    this.#trees.clear();
  }

  async #sweep(): Promise<void> {
    const { stores, tenant, clock } = this.#at;
    try {
      const due = await stores.dueWebhooks(tenant, clock.now(), TREES_AT_A_TIME);
      for (const { rootAgentId } of due) this.look(rootAgentId);
    } catch {
      // The store does not answer now, or was closed; the next look finds what is due then.
    }
    if (this.#isClosed) return;
    this.#cancelSweep = clock.setDelay(SWEEP_MS, () => {
      this.#sweeping = this.#sweep();
    });
  }

  #watched(rootAgentId: string): WatchedTree {
    const known = this.#trees.get(rootAgentId);
    if (known) return known;
    const watching = watchTreeOf(this.#runtime, rootAgentId, { written: () => this.look(rootAgentId) });
    const tree: WatchedTree = {
      delivery: new TreeDelivery(rootAgentId, this.#at),
      stopWatching: () => watching.end(),
      working: undefined,
      isDue: false,
      cancelTimer: () => undefined,
    };
    this.#trees.set(rootAgentId, tree);
    return tree;
  }

  async #work(rootAgentId: string, tree: WatchedTree): Promise<void> {
    // Later, so that a burst of rows is one look.
    await new Promise((resolve) => setImmediate(resolve));
    while (tree.isDue && !this.#isClosed) {
      tree.isDue = false;
      try {
        const lookAt = await tree.delivery.run();
        if (lookAt === undefined && !tree.isDue) this.#forget(rootAgentId, tree);
        else if (lookAt !== undefined) this.#lookAt(rootAgentId, tree, lookAt);
      } catch (error) {
        this.#warn(error);
      }
    }
    tree.working = undefined;
  }

  #lookAt(rootAgentId: string, tree: WatchedTree, at: number): void {
    tree.cancelTimer();
    if (!this.#isClosed) tree.cancelTimer = this.#at.clock.setTimer(at, () => this.look(rootAgentId));
  }

  #forget(rootAgentId: string, tree: WatchedTree): void {
    tree.stopWatching();
    tree.cancelTimer();
    if (this.#trees.get(rootAgentId) === tree) this.#trees.delete(rootAgentId);
  }

  /** What cannot be reached now is tried again by the regular look, as is everything else. */
  #warn(error: unknown): void {
    if (this.#isClosed || (error instanceof TroupeError && error.retryable)) return;
    process.emitWarning(`webhooks could not be told, and are tried again: ${this.#at.words(error)}`, {
      code: "TROUPE_WEBHOOKS",
    });
  }
}

import { TroupeError } from "../../errors/index.ts";
import { type Runtime, watchTreeOf } from "../../runtime/index.ts";
import { type DeliveryDependencies, TreeDelivery } from "./tree-delivery.ts";

/** Interval at which a server searches the store for trees that are due, in milliseconds. */
const SWEEP_MS = 5_000;
const TREES_AT_A_TIME = 100;

/** A tree with webhooks, as this server knows it. */
interface WatchedTree {
  readonly delivery: TreeDelivery;
  readonly stopWatching: () => void;
  /** The running delivery; `undefined` without one. */
  working: Promise<void> | undefined;
  /** Rows were written since the delivery started. */
  isDue: boolean;
  cancelTimer: () => void;
}

/**
 * Starts deliveries for the trees of one runtime: when rows are written in this process or elsewhere, when a retry is
 * due, or when the server of a tree is gone, which the periodic sweep of the store detects. Owns: which trees are
 * watched, and when they are checked. Does not own: the content of notifications.
 *
 * Invariants
 * 1. A tree has one delivery at a time; rows written meanwhile start another one after it.
 * 2. A tree without webhooks causes no work.
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

  /** Delivers the pending notifications of a tree. */
  look(rootAgentId: string): void {
    if (this.#isClosed) return;
    const tree = this.#watched(rootAgentId);
    tree.isDue = true;
    tree.delivery.nudge();
    tree.working ??= this.#work(rootAgentId, tree);
  }

  /** Ends all work that `closing` of the dependencies does not end, and releases the claims. */
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
      // The store is unavailable or closed; the next sweep finds the trees that are due.
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
    // Deferred, so that a burst of rows causes a single check.
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

  /** After a failure, the next sweep tries again. */
  #warn(error: unknown): void {
    if (this.#isClosed || (error instanceof TroupeError && error.retryable)) return;
    process.emitWarning(`webhooks could not be delivered and are retried: ${this.#at.words(error)}`, {
      code: "TROUPE_WEBHOOKS",
    });
  }
}

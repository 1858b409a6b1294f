import { performance } from "node:perf_hooks";
import { type AgentKey, rootOf } from "../../state/index.ts";
import { type MemoryRows, PackedTree, type TreeRows } from "./memory-rows.ts";

/** Trees that are packed before others get their turn: about a millisecond. */
const PACKED_AT_ONCE = 8;
/** Entries of trees at rest that may wait until the process has time: about 50 MB. */
const MOST_ENTRIES = 65_536;
/** How long the event loop is watched before it counts as busy or not. */
const WATCHED_MS = 1_000;
/** The part of that time in which it worked, from which on it is busy. */
const BUSY_PART = 0.5;

interface RestingTree {
  readonly key: AgentKey;
  readonly tree: TreeRows;
  /** Its last cursor when it came to rest: a tree with another one has been used since, and will rest again. */
  readonly cursor: number;
  readonly entries: number;
}

/**
 * Trees at rest that are still to be packed.
 * Owns: when they are packed. Does not own: whether a tree may be packed, and how.
 *
 * 1. They are packed when the event loop has time to spare: a turn that runs pays nothing for those that rest.
 * 2. While it has none, the oldest are packed all the same when more than so many entries wait.
 * 3. What cannot be packed stays as it is.
 */
export class RestingTrees {
  readonly #rows: MemoryRows;
  readonly #isBusy: () => boolean;
  /** The oldest first. */
  readonly #resting = new Map<TreeRows, RestingTree>();
  #entries = 0;
  #isPacking = false;

  constructor(rows: MemoryRows, isBusy = busyEventLoop()) {
    this.#rows = rows;
    this.#isBusy = isBusy;
  }

  add(keys: readonly AgentKey[]): void {
    for (const key of keys) {
      const tree = this.#rows.tenants.get(key.tenant)?.trees.get(rootOf(key.agentId));
      if (!tree || tree instanceof PackedTree) continue;
      this.#take(tree);
      const entries = tree.journal.reduce((count, row) => count + row.entries.length, 0);
      this.#resting.set(tree, { key, tree, cursor: tree.lastCursor, entries });
      this.#entries += entries;
    }
    if (!this.#isPacking && this.#resting.size > 0) this.#pack().catch(() => undefined);
  }

  async #pack(): Promise<void> {
    this.#isPacking = true;
    try {
      // Most programs end before an agent rests.
      const { packTreeOf } = await import("./memory-pack.ts");
      while (this.#resting.size > 0) {
        const least = this.#isBusy() ? MOST_ENTRIES : 0;
        while (this.#resting.size > 0 && this.#entries > least) {
          for (const { key, tree, cursor } of this.#oldest())
            if (tree.lastCursor === cursor) packTreeOf(this.#rows, key);
          await new Promise((resolve) => setImmediate(resolve));
        }
        if (this.#resting.size > 0) await new Promise((resolve) => setTimeout(resolve, WATCHED_MS).unref());
      }
    } finally {
      this.#isPacking = false;
    }
  }

  #oldest(): RestingTree[] {
    const oldest: RestingTree[] = [];
    for (const resting of this.#resting.values()) {
      if (oldest.length === PACKED_AT_ONCE) break;
      oldest.push(resting);
    }
    for (const { tree } of oldest) this.#take(tree);
    return oldest;
  }

  #take(tree: TreeRows): void {
    this.#entries -= this.#resting.get(tree)?.entries ?? 0;
    this.#resting.delete(tree);
  }
}

/** Whether the event loop had little time to spare since the last question, or until it was watched for long enough. */
function busyEventLoop(): () => boolean {
  let [last, since, isBusy] = [performance.eventLoopUtilization(), performance.now(), true];
  return () => {
    const now = performance.now();
    if (now - since < WATCHED_MS / 2) return isBusy;
    const current = performance.eventLoopUtilization();
    isBusy = performance.eventLoopUtilization(current, last).utilization >= BUSY_PART;
    [last, since] = [current, now];
    return isBusy;
  };
}

import type { Clock } from "../../base/index.ts";
import type { RetentionOptions } from "../api/deletion-types.ts";
import { type DeletionDependencies, finishDeletions } from "./delete-tree.ts";
import { pruneSchedules } from "./prune-schedules.ts";
import { pruneTrees } from "./delete-trees.ts";

/** How many roots one pass looks at, and how many schedules. */
const ROOTS_AT_ONCE = 200;
const SCHEDULES_AT_ONCE = 1_000;
const SHORTEST_MS = 1_000;
const LONGEST_MS = 600_000;

/**
 * Deletes the trees that are older than the retention allows, and schedules that ended before, in passes.
 * Owns: when a pass starts, and where in the lists of roots and schedules it starts. Does not own: whether a tree may be deleted; the store decides.
 *
 * Invariants
 * 1. A pass looks at a bounded number of roots and schedules. The next one continues where it ended, and starts again at the end of the
 *    list.
 * 2. Several processes may run passes at once: each tree is deleted, and counted, by one of them.
 * 3. A pass that fails is reported once, and the next one tries again.
 */
export class Retention {
  readonly #dependencies: DeletionDependencies & { readonly clock: Pick<Clock, "now" | "setDelay"> };
  readonly #options: RetentionOptions;
  #after: string | undefined;
  #afterSchedule: string | undefined;
  #isFailing = false;
  #isClosed = false;
  #cancel: (() => void) | undefined;
  #pass: Promise<void> = Promise.resolve();

  constructor(dependencies: DeletionDependencies, options: RetentionOptions) {
    this.#dependencies = dependencies;
    this.#options = options;
  }

  start(): void {
    const { endedAfterMs, everyMs = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, endedAfterMs / 10)) } = this.#options;
    this.#cancel = this.#dependencies.clock.setDelay(Math.ceil(everyMs), () => {
      this.#pass = this.#run().finally(() => {
        if (!this.#isClosed) this.start();
      });
    });
  }

  /** Resolves when the running pass has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel?.();
    await this.#pass;
  }

  async #run(): Promise<void> {
    const { endedAfterMs, keepCopies } = this.#options;
    try {
      const [failed] = await finishDeletions(this.#dependencies);
      this.#afterSchedule = await pruneSchedules(this.#dependencies, {
        endedBefore: this.#dependencies.clock.now() - endedAfterMs,
        after: this.#afterSchedule,
        limit: SCHEDULES_AT_ONCE,
      });
      this.#after = await pruneTrees(this.#dependencies, {
        unusedSince: this.#dependencies.clock.now() - endedAfterMs,
        by: "retention",
        keepCopies,
        after: this.#after,
        limit: ROOTS_AT_ONCE,
        isOver: () => this.#isClosed,
      });
      if (failed) throw failed.error;
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing && !this.#isClosed) {
        process.emitWarning(
          `trees older than the retention could not be deleted and will be tried again: ${String(error)}`,
        );
      }
      this.#isFailing = true;
    }
  }
}

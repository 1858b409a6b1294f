import type { Clock } from "../../base/index.ts";
import { deletedIdHash, type Stores } from "../../stores/index.ts";

/** Other processes' clocks may be behind by this much, in milliseconds. */
const OVERLAP_MS = 5 * 60_000;
const AT_ONCE = 1_000;

export interface DeletionWatchOptions {
  readonly stores: Stores;
  readonly tenant: string;
  readonly clock: Pick<Clock, "now">;
  /** The roots of the trees of which this process has something in memory. */
  readonly roots: () => ReadonlySet<string>;
  readonly forget: (rootAgentId: string, deletedAt: number) => void;
}

/**
 * Finds out which trees other processes have deleted, so that this one drops what it has of them in memory. Writes of this process to a
 * deleted tree fail in any case.
 * Owns: which deletions it has seen. Does not own: what is dropped.
 */
export class DeletionWatch {
  readonly #options: DeletionWatchOptions;
  /** Hashes of deletions that it has handled, with their times. */
  readonly #seen = new Map<string, number>();
  #isLooking = false;

  constructor(options: DeletionWatchOptions) {
    this.#options = options;
  }

  /** Called with every heartbeat; a failed read is repeated with the next one. */
  look(): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    this.#look()
      .catch(() => undefined)
      .finally(() => {
        this.#isLooking = false;
      });
  }

  async #look(): Promise<void> {
    const { stores, tenant, clock, roots, forget } = this.#options;
    if (roots().size === 0) return;
    const since = clock.now() - OVERLAP_MS;
    for (const [hash, at] of this.#seen) if (at < since) this.#seen.delete(hash);
    const recent = await stores.deletions({ tenant, since, limit: AT_ONCE });
    const deleted = new Map(recent.filter(({ idHash }) => !this.#seen.has(idHash)).map((one) => [one.idHash, one]));
    if (deleted.size === 0) return;
    for (const rootAgentId of roots()) {
      const found = deleted.get(deletedIdHash(tenant, rootAgentId));
      const isStored = found && (await stores.readAgent({ tenant, agentId: rootAgentId })) !== undefined;
      if (found && !isStored) forget(rootAgentId, found.deletedAt);
      // A deletion that was begun is looked at again.
      if (found && isStored) deleted.delete(found.idHash);
    }
    for (const { idHash, deletedAt } of deleted.values()) this.#seen.set(idHash, deletedAt);
  }
}

import { MemoryReads } from "./memory/memory-reads.ts";
import { localStores } from "./rules/database-stores.ts";
import { unattendedIn } from "./rules/leases.ts";
import { LocalLive } from "./rules/live-channel.ts";
import type { Stores } from "./rules/ports.ts";
import type { LocalDatabase, RestlessTables } from "./rules/tables.ts";
import { MemoryUndo } from "./rules/undo.ts";

/** Stores in this process' memory, with the same rules as the durable ones: for tests, tools of one run, and a start. */
export function memoryStores(): Stores {
  return localStores("memory", new MemoryDatabase());
}

/** Everything in this process' memory: gone with the process, seen by nobody else. */
class MemoryDatabase implements LocalDatabase {
  readonly tables: RestlessTables;
  readonly live = new LocalLive();
  readonly #undo = new MemoryUndo();

  constructor() {
    this.tables = new MemoryReads(this.#undo);
  }

  async write<T>(work: () => T): Promise<T> {
    return this.#undo.run(work);
  }

  part<T>(work: () => T): T {
    return this.#undo.run(work);
  }

  isFatal(): boolean {
    return false;
  }

  async read<T>(work: () => T): Promise<T> {
    return work();
  }

  unattended(
    ...[tenant, query, steady]: Parameters<LocalDatabase["unattended"]>
  ): ReturnType<LocalDatabase["unattended"]> {
    return this.read(() => unattendedIn(this.tables, tenant, query, steady));
  }

  onForeignWrite(): () => void {
    return () => {};
  }

  /** Frees nothing: whoever holds the stores may go on with them. */
  async close(): Promise<void> {}
}

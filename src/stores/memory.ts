import { MemoryReads } from "./memory/memory-reads.ts";
import { databaseStores } from "./rules/database-stores.ts";
import { unattendedIn } from "./rules/leases.ts";
import { InProcessLiveChannel } from "./rules/live-channel.ts";
import type { Stores } from "./rules/ports.ts";
import type { CandidateTables, Database } from "./rules/tables.ts";
import { UndoLog } from "./rules/undo-log.ts";

/** Stores in this process' memory, with the same rules as the durable ones: for tests, tools of one run, and a start. */
export function memoryStores(): Stores {
  return databaseStores("memory", new MemoryDatabase());
}

/** Everything in this process' memory: gone with the process, seen by nobody else. */
class MemoryDatabase implements Database {
  readonly tables: CandidateTables;
  readonly live = new InProcessLiveChannel();
  readonly #undo = new UndoLog();

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

  unattended(...[tenant, query, steady]: Parameters<Database["unattended"]>): ReturnType<Database["unattended"]> {
    return this.read(() => unattendedIn(this.tables, tenant, query, steady));
  }

  onForeignWrite(): () => void {
    return () => {};
  }

  /** Frees nothing: whoever holds the stores may go on with them. */
  async close(): Promise<void> {}
}

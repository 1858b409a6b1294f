import type { AgentKey } from "../state/index.ts";
import { MemoryReads } from "./memory/memory-reads.ts";
import { databaseStores } from "./rules/database-stores.ts";
import { unattendedIn } from "./rules/leases.ts";
import type { Stores } from "./rules/ports.ts";
import type { CandidateTables, Database } from "./rules/tables.ts";
import { UndoLog } from "./rules/undo-log.ts";

/**
 * Stores in the memory of this process, with the same rules as the durable ones: for tests, one-off scripts and first
 * steps.
 */
export function memoryStores(): Stores {
  return databaseStores("memory", new MemoryDatabase());
}

/** Everything is lost with the process and invisible to others. */
class MemoryDatabase implements Database {
  readonly tables: CandidateTables;
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

  async posted(keys: readonly AgentKey[]): Promise<AgentKey[]> {
    return keys.filter((key) => this.tables.inboxSize(key) > 0);
  }

  onForeignWrite(): () => void {
    return () => {};
  }

  /** Frees nothing: the stores may still be used. */
  async close(): Promise<void> {}
}

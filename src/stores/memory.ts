import { MemoryReads } from "./memory/memory-reads.ts";
import { databaseStores } from "./rules/database-stores.ts";
import { unattendedIn } from "./rules/leases.ts";
import type { AgentKey } from "../state/index.ts";
import type { Stores } from "./rules/ports.ts";
import type { Database } from "./rules/tables.ts";
import { UndoLog } from "./rules/undo-log.ts";

/**
 * Stores in the memory of this process, with the same rules as the durable ones: for tests, one-off scripts and first
 * steps.
 */
export function memoryStores(): Stores {
  return databaseStores("memory", new MemoryDatabase());
}

/** Trees that are packed before others get their turn: about a millisecond. */
const PACKED_AT_ONCE = 8;

/**
 * Everything is lost with the process and invisible to others. Trees whose agents rest are packed, in the background and a
 * few at a time.
 */
class MemoryDatabase implements Database {
  readonly tables: MemoryReads;
  readonly #undo = new UndoLog();
  readonly #resting: AgentKey[] = [];
  #isPacking = false;

  constructor() {
    this.tables = new MemoryReads(this.#undo);
  }

  async write<T>(work: () => T): Promise<T> {
    this.tables.isWriting = true;
    try {
      return this.#undo.run(work);
    } finally {
      this.tables.isWriting = false;
    }
  }

  part<T>(work: () => T): T {
    return this.#undo.run(work);
  }

  rest(keys: readonly AgentKey[]): void {
    this.#resting.push(...keys);
    // What cannot be packed stays as it is.
    if (!this.#isPacking) this.#pack().catch(() => undefined);
  }

  async #pack(): Promise<void> {
    this.#isPacking = true;
    try {
      // Most programs end before an agent rests.
      const { packTreeOf } = await import("./memory/memory-pack.ts");
      while (this.#resting.length > 0) {
        for (const key of this.#resting.splice(0, PACKED_AT_ONCE)) packTreeOf(this.tables.rows, key);
        await new Promise((resolve) => setImmediate(resolve));
      }
    } finally {
      this.#isPacking = false;
    }
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
    return keys.filter((key) => this.tables.isPosted(key));
  }

  onForeignWrite(): () => void {
    return () => {};
  }

  /** Frees nothing: the stores may still be used. */
  async close(): Promise<void> {}
}

import type { AgentKey } from "../../state/index.ts";
import { unattendedIn } from "../rules/leases.ts";
import type { Database } from "../rules/tables.ts";
import { UndoLog } from "../rules/undo-log.ts";
import { MemoryReads } from "./memory-reads.ts";

/** Data is lost when the process ends and invisible to other processes. */
export class MemoryDatabase implements Database {
  readonly #undo = new UndoLog();
  readonly tables = new MemoryReads(this.#undo);
  readonly spansTrees = true;

  async write<T>(work: () => T): Promise<T> {
    return this.#undo.run(work);
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

  /** Does nothing: the stores may still be used. */
  async close(): Promise<void> {}
}

import type { AgentKey } from "../../state/index.ts";
import { unattendedIn } from "../rules/leases.ts";
import type { Database } from "../rules/tables.ts";
import { UndoLog } from "../rules/undo-log.ts";
import { MemoryReads } from "./memory-reads.ts";
import { RestingTrees } from "./memory-rest.ts";

/**
 * Everything is lost with the process and invisible to others. Trees whose agents rest are packed when the process has
 * time for it (`RestingTrees`).
 */
export class MemoryDatabase implements Database {
  readonly tables: MemoryReads;
  readonly #undo = new UndoLog();
  readonly #resting: RestingTrees;

  /** `isBusy`: whether packing has to wait; default whether the event loop had little time to spare lately. */
  constructor(isBusy?: () => boolean) {
    this.tables = new MemoryReads(this.#undo);
    this.#resting = new RestingTrees(this.tables.rows, isBusy);
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
    this.#resting.add(keys);
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

import { MemoryDatabase } from "./memory/memory-database.ts";
import { databaseStores } from "./rules/database-stores.ts";
import type { Stores } from "./rules/ports.ts";

/**
 * Stores in the memory of this process, with the same rules as the durable ones: for tests, one-off scripts and first
 * steps.
 */
export function memoryStores(): Stores {
  return databaseStores("memory", new MemoryDatabase());
}

import { localStores } from "./rules/local-stores.ts";
import { MemoryDatabase } from "./memory/memory-database.ts";
import type { Stores } from "./rules/ports.ts";

/** Stores in this process' memory, with the same rules as the durable ones: for tests, tools of one run, and a start. */
export function memoryStores(): Stores {
  return localStores("memory", new MemoryDatabase());
}

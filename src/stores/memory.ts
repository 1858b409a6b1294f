import { localStores } from "./local-stores.ts";
import { MemoryDatabase } from "./memory-database.ts";
import type { Stores } from "./ports.ts";

/** Stores in this process' memory, with the same rules as the durable ones: for tests, tools of one run, and a start. */
export function memoryStores(): Stores {
  return localStores("memory", new MemoryDatabase());
}

import type { Conversation, Entrant } from "./contender.ts";

/** Memory after garbage collection. Pending timers and promises are settled first. */
export async function memoryAtRest(): Promise<NodeJS.MemoryUsage> {
  for (let time = 0; time < 3; time += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    globalThis.gc?.();
  }
  return process.memoryUsage();
}

/** Opens conversations sequentially. */
export async function openMany(entrant: Entrant, count: number): Promise<Conversation[]> {
  const conversations: Conversation[] = [];
  for (let index = 0; index < count; index += 1) conversations.push(await entrant.open());
  return conversations;
}

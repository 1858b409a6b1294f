import type { Conversation, Entrant } from "./contender.ts";

/** After garbage is collected; timers and promises that are on their way come to rest first. */
export async function memoryAtRest(): Promise<NodeJS.MemoryUsage> {
  for (let time = 0; time < 3; time += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    globalThis.gc?.();
  }
  return process.memoryUsage();
}

/** One after the other. */
export async function openMany(entrant: Entrant, count: number): Promise<Conversation[]> {
  const conversations: Conversation[] = [];
  for (let index = 0; index < count; index += 1) conversations.push(await entrant.open());
  return conversations;
}

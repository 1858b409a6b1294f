/**
 * `node --expose-gc bench/alive-process.ts memory|sqlite COUNT`: starts COUNT agents, lets them become idle, wakes a few
 * and prints the cost of their turns as JSON. It runs in a separate process, so that nothing else is in its heap.
 */
import { setTimeout as delay } from "node:timers/promises";
import { memoryAtRest, openMany } from "./at-rest.ts";
import { storeKinds } from "./ours/open-stores.ts";
import { conversationScenario, takeTurns, windowed } from "./studies/late-turn.ts";

/** 1 KB is 1,000 bytes. */
export interface AliveFigures {
  /** Heap per idle agent, relative to the process before the first agent. */
  readonly heapKilobytes: number;
  /** Time of a turn while the other agents are idle, with the model in this process. */
  readonly turnMs: number;
  readonly turnProcessorMs: number;
}

const AWAKE = 16;
const TURNS = 320;
/** Warm-up rounds, so that the code is compiled before turns are measured. */
const WARM_UPS = 10;

async function main([kindText = "", countText = ""]: readonly string[]): Promise<void> {
  const count = Number(countText);
  const kind = storeKinds.find((known) => known === kindText);
  if (globalThis.gc === undefined || kind === undefined || !(count >= 1)) {
    throw new Error("Usage: node --expose-gc bench/alive-process.ts memory|sqlite COUNT");
  }
  const entrant = await windowed(kind).prepare(conversationScenario, "");
  // Load and compile all code before the first measurement.
  const firstOnes = await openMany(entrant, 200);
  await takeTurns(firstOnes, 1);
  for (const conversation of firstOnes) await conversation.close?.();
  firstOnes.length = 0;
  const before = await memoryAtRest();
  const conversations = await openMany(entrant, count);
  // Agents are unloaded after five idle seconds, checked every second.
  await delay(8_000);
  const resting = await memoryAtRest();
  const awakeCount = Math.min(AWAKE, count);
  const awake = Array.from({ length: awakeCount }, (_, index) =>
    conversations.at(Math.floor((index * count) / awakeCount)),
  ).filter((conversation) => conversation !== undefined);
  await takeTurns(awake, WARM_UPS);
  const { value, processorMs } = await takeTurns(awake, Math.ceil(TURNS / awakeCount));
  const figures: AliveFigures = {
    heapKilobytes: (resting.heapUsed - before.heapUsed) / 1000 / count,
    turnMs: value,
    turnProcessorMs: processorMs,
  };
  process.stdout.write(`${JSON.stringify(figures)}\n`);
  await entrant.close();
}

await main(process.argv.slice(2));

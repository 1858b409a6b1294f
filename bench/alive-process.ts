/**
 * `node --expose-gc bench/alive-process.ts memory|sqlite COUNT`: starts so many agents, lets them rest, wakes a few of them and
 * prints what turns of these take, as JSON. A process of its own, so that nothing else is in its heap.
 */
import { setTimeout as delay } from "node:timers/promises";
import { memoryAtRest, openMany } from "./at-rest.ts";
import { storeKinds } from "./ours/open-stores.ts";
import { conversationScenario, takeTurns, windowed } from "./studies/late-turn.ts";

/** 1 KB is 1,000 bytes. */
export interface AliveFigures {
  /** For one agent at rest, over the process as it was before the first one. */
  readonly heapKilobytes: number;
  /** Of an agent that is awake while the others rest, the model in this process. */
  readonly turnMs: number;
  readonly turnProcessorMs: number;
}

const AWAKE = 16;
const TURNS = 320;
/** Rounds of the awake agents before their turns are measured: until the code for it is compiled. */
const WARM_UPS = 10;

async function main([kindText = "", countText = ""]: readonly string[]): Promise<void> {
  const count = Number(countText);
  const kind = storeKinds.find((known) => known === kindText);
  if (globalThis.gc === undefined || kind === undefined || !(count >= 1)) {
    throw new Error("Usage: node --expose-gc bench/alive-process.ts memory|sqlite COUNT");
  }
  const entrant = await windowed(kind).prepare(conversationScenario, "");
  // The code for it all is loaded and compiled before the first look.
  const firstOnes = await openMany(entrant, 200);
  await takeTurns(firstOnes, 1);
  for (const conversation of firstOnes) await conversation.close?.();
  firstOnes.length = 0;
  const before = await memoryAtRest();
  const conversations = await openMany(entrant, count);
  // Agents leave memory after five seconds in which they do nothing, and are looked at every second.
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

/**
 * `node --expose-gc bench/idle-process.ts bare|memory|sqlite COUNT [MODEL_URL]`: opens so many conversations beside a fifth of
 * them that rest already, has each take a turn with one call of a tool if a model server is named, lets them rest, closes all,
 * and prints what they held, as JSON. A process of its own, so that nothing else is in its heap.
 */
import { setTimeout as delay } from "node:timers/promises";
import { memoryAtRest, openMany } from "./at-rest.ts";
import type { Contender, Conversation } from "./contender.ts";
import { answerText } from "./model-answers.ts";
import { userInput } from "./scenario.ts";
import { timed } from "./study.ts";

export type IdleKind = "bare" | "memory" | "sqlite";

/**
 * For each further conversation, over the process as it was when the first ones rested; 1 KB is 1,000 bytes. What the process
 * holds itself (compiled code, caches of a fixed size: some 5 MB, which V8 drops and makes again as it likes) is in both looks.
 */
export interface IdleFigures {
  readonly heapKilobytes: number;
  readonly rssKilobytes: number;
  /** What is still in the heap when all are shut down, over the process before the first one: in memory the stores' records. */
  readonly leftKilobytes: number;
  /** To create and start one, its turn included. */
  readonly processorMs: number;
}

async function contenderOf(kind: string): Promise<Contender> {
  if (kind === "bare") return (await import("./bare/index.ts")).bare;
  const { oursInMemory, oursOnSqlite } = await import("./ours/index.ts");
  return kind === "memory" ? oursInMemory : oursOnSqlite;
}

/** Agents leave memory after five seconds in which they do nothing, and are looked at every second. */
async function leaveMemory(): Promise<void> {
  await delay(8_000);
}

async function main([kind = "", countText = "", modelUrl]: readonly string[]): Promise<void> {
  const count = Number(countText);
  if (globalThis.gc === undefined || !["bare", "memory", "sqlite"].includes(kind) || !(count >= 1)) {
    throw new Error("Usage: node --expose-gc bench/idle-process.ts bare|memory|sqlite COUNT [MODEL_URL]");
  }
  const contender = await contenderOf(kind);
  const entrant = await contender.prepare(
    {
      name: "idle",
      title: "",
      agent: "tools",
      model: "loop-2",
      parallel: 1,
      turns: 0,
      callsPerTurn: 0,
      conversations: { full: count, quick: count },
      unit: "ms/turn",
    },
    modelUrl ?? "http://127.0.0.1:9/v1",
  );
  // The code for opening and closing is loaded and compiled before the first look.
  const ready = async (few: number): Promise<Conversation[]> => {
    const opened = await openMany(entrant, few);
    for (const conversation of modelUrl === undefined ? [] : opened) {
      const text = await conversation.turn(userInput);
      if (text !== answerText) throw new Error(`idle: expected the answer ${answerText}, got ${text}.`);
    }
    return opened;
  };
  for (const conversation of await ready(200)) await conversation.close?.();
  const before = await memoryAtRest();
  const first = await ready(Math.ceil(count / 5));
  await leaveMemory();
  const few = await memoryAtRest();
  const { result: further, processorMs } = await timed(() => ready(count));
  await leaveMemory();
  const resting = await memoryAtRest();
  const conversations = [...first.splice(0), ...further.splice(0)];
  const all = conversations.length;
  for (const conversation of conversations.splice(0)) await conversation.close?.();
  const after = await memoryAtRest();
  const figures: IdleFigures = {
    heapKilobytes: (resting.heapUsed - few.heapUsed) / 1000 / count,
    rssKilobytes: (resting.rss - few.rss) / 1000 / count,
    leftKilobytes: (after.heapUsed - before.heapUsed) / 1000 / all,
    processorMs: processorMs / count,
  };
  await entrant.close();
  process.stdout.write(`${JSON.stringify(figures)}\n`);
}

await main(process.argv.slice(2));

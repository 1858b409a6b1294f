/**
 * `node --expose-gc bench/idle-process.ts bare|memory|sqlite COUNT [MODEL_URL]`: opens so many conversations, has each take a
 * turn with one call of a tool if a model server is named, lets them rest, closes them, and prints what they held, as JSON. A
 * process of its own, so that nothing else is in its heap.
 */
import { setTimeout as delay } from "node:timers/promises";
import { memoryAtRest, openMany } from "./at-rest.ts";
import type { Contender, Conversation } from "./contender.ts";
import { answerText } from "./model-answers.ts";
import { userInput } from "./scenario.ts";
import { timed } from "./study.ts";

export type IdleKind = "bare" | "memory" | "sqlite";

/** For one conversation, over the process as it was before the first one; 1 KB is 1,000 bytes. */
export interface IdleFigures {
  readonly heapKilobytes: number;
  readonly rssKilobytes: number;
  /** What is still in the heap when all are shut down, the runtime being open: in memory the stores' records. */
  readonly leftKilobytes: number;
  /** To create and start one, its turn included. */
  readonly processorMs: number;
}

async function contenderOf(kind: string): Promise<Contender> {
  if (kind === "bare") return (await import("./bare/index.ts")).bare;
  const { oursInMemory, oursOnSqlite } = await import("./ours/index.ts");
  return kind === "memory" ? oursInMemory : oursOnSqlite;
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
  const { result: conversations, processorMs } = await timed(() => ready(count));
  // Agents are put away after five seconds in which they do nothing, and looked at every second.
  await delay(8_000);
  const resting = await memoryAtRest();
  for (const conversation of conversations) await conversation.close?.();
  conversations.length = 0;
  const after = await memoryAtRest();
  const perAgent = (bytes: number): number => bytes / 1000 / count;
  const figures: IdleFigures = {
    heapKilobytes: perAgent(resting.heapUsed - before.heapUsed),
    rssKilobytes: perAgent(resting.rss - before.rss),
    leftKilobytes: perAgent(after.heapUsed - before.heapUsed),
    processorMs: processorMs / count,
  };
  await entrant.close();
  process.stdout.write(`${JSON.stringify(figures)}\n`);
}

await main(process.argv.slice(2));

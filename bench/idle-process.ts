/**
 * `node --expose-gc bench/idle-process.ts bare|memory|sqlite COUNT [MODEL_URL]`: opens COUNT conversations in addition to a
 * fifth as many that are idle already. With MODEL_URL, each takes a turn with one tool call. Then all become idle and are
 * closed. Prints their memory as JSON. It runs in a separate process, so that nothing else is in its heap.
 */
import { setTimeout as delay } from "node:timers/promises";
import { memoryAtRest, openMany } from "./at-rest.ts";
import type { Contender, Conversation } from "./contender.ts";
import { answerText } from "./model-answers.ts";
import { userInput } from "./scenario.ts";
import { timed } from "./study.ts";

export type IdleKind = "bare" | "memory" | "sqlite";

/**
 * Per additional conversation, relative to the process with the first conversations idle; 1 KB is 1,000 bytes. Both
 * measurements include the fixed memory of the process (compiled code and caches, about 5 MB, which V8 may drop and
 * rebuild).
 */
export interface IdleFigures {
  readonly heapKilobytes: number;
  readonly rssKilobytes: number;
  /** Heap left after all are shut down, relative to the process before the first one. In memory: the stores' records. */
  readonly leftKilobytes: number;
  /** Processor time to create and start one, including its turn. */
  readonly processorMs: number;
}

async function contenderOf(kind: string): Promise<Contender> {
  if (kind === "bare") return (await import("./bare/index.ts")).bare;
  const { oursInMemory, oursOnSqlite } = await import("./ours/index.ts");
  return kind === "memory" ? oursInMemory : oursOnSqlite;
}

/** Agents are unloaded after five idle seconds, checked every second. */
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
  // Load and compile the code for opening and closing before the first measurement.
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

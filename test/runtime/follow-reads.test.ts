import { expect, it } from "vitest";
import { z } from "zod";
import {
  createRuntime,
  defineAgent,
  defineTool,
  memoryStores,
  type Runtime,
  type Stores,
  type TroupeEvent,
} from "../../src/index.ts";
import { agentOfTurn } from "../../src/state/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { loopTurns } from "../support/journal-probes.ts";
import { describeRuntimes, type Stage, stageLeaseMs } from "../support/runtimes.ts";
import { calling } from "../support/turn-probes.ts";

const look = defineTool({
  name: "look",
  description: "Looks.",
  parameters: z.object({}),
  effect: "none",
  execute: () => "seen",
});

/** Calls a tool three times, then streams its answer in pieces. */
const looker = defineAgent({
  name: "looker",
  model: scriptedModel(({ messages }) => {
    const begun = messages.findLastIndex(({ role }) => role === "user");
    return messages.length - begun < 6 ? calling("look") : { deltas: ["all ", "seen"] };
  }),
  tools: [look],
});

function streamOf(runtime: Runtime, rootAgentId: string, signal?: AbortSignal): AsyncIterator<TroupeEvent> {
  return runtime.follow(rootAgentId, { signal })[Symbol.asyncIterator]();
}

/** Reads the events of a stream up to the end of the turn `last`. */
async function readTo(stream: AsyncIterator<TroupeEvent>, last: string): Promise<TroupeEvent[]> {
  const events: TroupeEvent[] = [];
  for (;;) {
    const taken = await stream.next();
    if (taken.done === true) return events;
    const event = taken.value;
    events.push(event);
    if (event.type === "turn.completed" && event.turnId === last) return events;
  }
}

/** The stored events of a tree up to the end of the turn `last`. */
async function stored(runtime: Runtime, last: string): Promise<TroupeEvent[]> {
  const stream = streamOf(runtime, agentOfTurn(last));
  const events = await readTo(stream, last);
  await stream.return?.();
  return durable(events);
}

const durable = (events: readonly TroupeEvent[]) => events.filter(({ cursor }) => cursor !== null);

const counted = ["readTree", "readJournal", "readAgent", "messagesById"] as const;

/** A runtime, and the number of store reads that readers of events cause. */
async function counting(stage: Stage) {
  const reads = { readTree: 0, readJournal: 0, readAgent: 0, messagesById: 0 };
  const looked = stage.look();
  const stores: Stores = { ...looked, close: async () => undefined };
  for (const name of counted) {
    const read = looked[name] as (...given: unknown[]) => unknown;
    Object.assign(stores, {
      [name]: (...given: unknown[]) => {
        reads[name] += 1;
        return read(...given);
      },
    });
  }
  const runtime = await createRuntime({ agents: [looker], stores, clock: stage.clock, leaseMs: stageLeaseMs });
  return { runtime, reads };
}

describeRuntimes(
  "the rows of a followed tree",
  (stage) => {
    it("reach readers in the same process without a read per commit", async () => {
      const { runtime, reads } = await counting(stage());
      const agents = await Promise.all(["f", "g"].map((agentId) => runtime.agent("looker", { agentId })));
      for (const agent of agents) await agent.start();
      const turns = async () => await Promise.all(agents.map((agent) => agent.executeTurn("go").result));
      await turns();
      const before = { ...reads };
      await turns();
      const unfollowed = { ...reads };
      const streams = ["f", "g"].map((agentId) => streamOf(runtime, agentId));
      const begun = Promise.all(streams.map((stream, index) => readTo(stream, `${"fg"[index]}#3`)));
      await turns();
      const past = await begun;
      const joined = { ...reads };
      const coming = Promise.all(streams.map((stream, index) => readTo(stream, `${"fg"[index]}#4`)));
      await turns();
      const rest = await coming;
      for (const name of counted) {
        expect([name, reads[name] - joined[name]]).toEqual([name, unfollowed[name] - before[name]]);
      }
      for (const [index, last] of ["f#4", "g#4"].entries()) {
        expect(durable([...(past[index] ?? []), ...(rest[index] ?? [])])).toEqual(await stored(runtime, last));
      }
      for (const stream of streams) await stream.return?.();
      await runtime.shutdown();
    });

    it("arrive once and in journal order if another process wrote in between", async () => {
      const { runtime } = await counting(stage());
      const other = await stage().open({ agents: [looker] });
      const agent = await runtime.agent("looker", { agentId: "f" });
      await agent.start();
      await agent.executeTurn("one").result;
      const events = readTo(streamOf(runtime, "f"), "f#3");
      await agent.shutdown();
      const there = await other.find("f");
      await there.start();
      await there.executeTurn("two").result;
      await there.shutdown();
      await agent.start();
      await agent.executeTurn("three").result;
      const seen = durable(await events);
      expect(seen).toEqual(await stored(other, "f#3"));
      expect(new Set(seen.map(({ cursor }) => cursor)).size).toBe(seen.length);
      expect(new Set(seen.flatMap(({ turnId }) => turnId ?? []))).toEqual(new Set(["f#1", "f#2", "f#3"]));
      await runtime.shutdown();
    });
  },
  ["memory", "sqlite", "redis"],
);

it("a row that the stores lose before a slow reader reads it is not delivered", async () => {
  const memory = memoryStores();
  const listeners = new Set<Parameters<Stores["onRolledBack"]>[0]>();
  let isLost = false;
  const stores: Stores = {
    ...memory,
    readTree: async (...given) => (isLost ? [] : await memory.readTree(...given)),
    onRolledBack: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  const runtime = await createRuntime({ agents: [looker], stores });
  const agent = await runtime.agent("looker", { agentId: "f" });
  await agent.start();
  await agent.executeTurn("one").result;
  const leaving = new AbortController();
  const stream = streamOf(runtime, "f", leaving.signal);
  await readTo(stream, "f#1");
  await agent.executeTurn("two").result;
  isLost = true;
  for (const listener of listeners) listener({ tenant: runtime.tenant, rootAgentId: "f", hadAt: 2, foundAt: 1 });
  const rest = readTo(stream, "f#2");
  await loopTurns(5);
  leaving.abort();
  expect((await rest).filter(({ turnId }) => turnId === "f#2")).toEqual([]);
  await runtime.shutdown();
});

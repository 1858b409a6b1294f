import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { createRuntime, defineAgent, defineTool, localQueues, type Queues } from "../../src/index.ts";
import { createFakeClock, scriptedModel } from "../../src/testing/index.ts";
import { NOW, ROOT } from "../contracts/names.ts";
import { note } from "../contracts/entry-fixtures.ts";
import { here, agentKey, type Owner, openAgent, ready } from "../contracts/stores-fixtures.ts";
import { openChild } from "../contracts/tree-fixtures.ts";
import { commandsOf, workOf } from "../support/redis-counts.ts";
import { redisProgram } from "../support/redis-server.ts";
import { redisOfSuite } from "../support/redis-suite.ts";
import { listening, ownPrefix, storesOn } from "../support/redis-stores.ts";

describe.skipIf(!redisProgram)("the number of Redis commands", () => {
  const redis = redisOfSuite();
  // Heartbeats, searches for dead processes and renewed subscriptions depend on time, which is not counted here: the runtimes
  // use fake clocks, and subscriptions are not renewed.
  beforeAll(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }));
  afterAll(() => void vi.useRealTimers());

  test("is at most four per step, in a late turn as in the first", async () => {
    const stores = storesOn(redis.server);
    const look = defineTool({
      name: "look",
      description: "Looks around.",
      parameters: z.object({}),
      effect: "none",
      execute: async () => "a room",
    });
    const model = scriptedModel(({ messages }) =>
      messages.at(-1)?.role === "tool" ? "a room" : { toolCalls: [{ name: "look", arguments: {} }] },
    );
    const scout = defineAgent({ name: "scout", model, tools: [look], budget: { maxTokens: 1_000_000_000 } });
    const runtime = await createRuntime({ agents: [scout], stores, clock: createFakeClock() });
    onTestFinished(async () => {
      await runtime.shutdown();
      await stores.close();
    });
    const agent = await runtime.agent("scout", { agentId: "s" });
    await agent.start();
    const turn = (): Promise<unknown> => agent.executeTurn("Look.").result;
    await turn();
    const early = await workOf(redis.client, turn);
    for (let count = 0; count < 150; count += 1) await turn();
    const late = await workOf(redis.client, turn);
    // Two steps: the tool call and the answer. The lists of turns are updated at the turn's beginning and end.
    expect(early.commands.slice(8)).toEqual([]);
    expect(late.commands).toEqual(early.commands);
    expect(late.bytesIn).toBeLessThan(early.bytesIn * 1.1);
  });

  test("is zero for heartbeats of another process and for its writes to trees that are not open here", async () => {
    const prefix = ownPrefix();
    const [mine, theirs] = [storesOn(redis.server, { prefix }), storesOn(redis.server, { prefix })];
    const { heard, end } = await listening(mine, (rootAgentId) => rootAgentId === "last");
    const clerk = defineAgent({ name: "clerk", model: scriptedModel("noted") });
    const runtime = await createRuntime({ agents: [clerk], stores: mine, clock: createFakeClock() });
    onTestFinished(async () => {
      await runtime.shutdown();
      await theirs.close();
    });
    const agent = await runtime.agent("clerk", { agentId: "c" });
    await agent.start();
    await agent.executeTurn("go").result;
    const owner = await openAgent(theirs);
    await owner.commit();
    const work = await workOf(redis.client, async () => {
      for (let count = 0; count < 20; count += 1) await owner.commit({ entries: [note("x")] });
      await theirs.heartbeat("here", NOW);
      await openAgent(theirs, { agentId: "last" });
      await heard;
    });
    end();
    // The other process reads whether the id of its new agent was deleted.
    expect(work.commands.filter((name) => !name.startsWith("eval"))).toEqual(["hget"]);
  });

  test("to acquire a lease after a write of another process is one read and one transaction", async () => {
    const prefix = ownPrefix();
    const [mine, theirs] = [storesOn(redis.server, { prefix }), storesOn(redis.server, { prefix })];
    onTestFinished(async () => {
      await mine.close();
      await theirs.close();
    });
    const owner = await openAgent(mine);
    await owner.commit();
    await mine.release(agentKey(), owner.epoch, { as: "leaving" });
    const { heard, end } = await listening(mine);
    const command = { input: "go", actorId: null, limits: null, ifBusy: "queue" } as const;
    await theirs.openTurn(agentKey(), command, NOW);
    await heard;
    const taken = await workOf(redis.client, async () => {
      expect(await mine.acquire(agentKey(), "here", 60_000, NOW)).toMatchObject({ type: "acquired" });
    });
    end();
    expect(taken.commands).toEqual(["evalsha", "evalsha"]);
  });

  test("of a turn that another process runs is one post, one read, and the worker's reads and commits", async () => {
    const prefix = ownPrefix();
    const queues: Queues = { ...localQueues(), kind: "shared" };
    const agents = [defineAgent({ name: "clerk", model: scriptedModel("noted") })];
    const part = (role: "client" | "worker") =>
      createRuntime({ agents, role, queues, stores: storesOn(redis.server, { prefix }), clock: createFakeClock() });
    const [worker, client] = [await part("worker"), await part("client")];
    onTestFinished(async () => {
      await client.shutdown();
      await worker.shutdown();
    });
    const agent = await client.agent("clerk", { agentId: "c" });
    await agent.start();
    const turn = (): Promise<unknown> => agent.executeTurn("go").result;
    const counts: number[] = [];
    for (let count = 0; count < 10; count += 1) counts.push(await commandsOf(redis.client, turn));
    // Two by the waiting process and three by the worker. The holder of the agent is also read once a second, and an early
    // notice of a change causes one more read: so the lowest count of ten turns is compared.
    expect(Math.min(...counts)).toBeLessThanOrEqual(7);
  });

  test("to post to an agent that another process holds is one, and the outcome names the holder", async () => {
    const prefix = ownPrefix();
    const [mine, theirs] = [storesOn(redis.server, { prefix }), storesOn(redis.server, { prefix })];
    onTestFinished(async () => {
      await mine.close();
      await theirs.close();
    });
    const owner = await openAgent(theirs);
    const command = { input: "go", actorId: null, limits: null, ifBusy: "queue" } as const;
    const post = async () => {
      const outcome = await mine.openTurn(agentKey(), command, NOW);
      return "holder" in outcome ? outcome.holder : undefined;
    };
    expect(await post()).toBeUndefined();
    const isTold = async (): Promise<boolean> => {
      // The answer is cached for a second.
      await mine.holder(agentKey());
      return (await post())?.processId === here.processId;
    };
    await vi.waitUntil(isTold, { timeout: 30_000 });
    await theirs.release(agentKey(), owner.epoch, { as: "leaving" });
    await mine.holder(agentKey());
    expect(await post()).toBeUndefined();
  });

  test("is one for a step of many agents of one tree that commit together", async () => {
    const stores = storesOn(redis.server);
    onTestFinished(() => stores.close());
    const root = await openAgent(stores);
    const kids: Owner[] = [];
    for (let index = 0; index < 40; index += 1) kids.push(await openChild(root, `kid${index}`));
    const batches = kids.map((kid) => kid.batch({ owned: ready }));
    expect(await commandsOf(redis.client, () => stores.commit(batches, NOW))).toBe(1);
  });

  test("to notify all children does not grow with their number", async () => {
    const prefix = ownPrefix();
    const stores = storesOn(redis.server, { prefix });
    onTestFinished(() => stores.close());
    const root = await openAgent(stores);
    for (let index = 0; index < 300; index += 1) await openChild(root, `kid${index}`);
    // The parents of all agents are read with one command; the first time its script is loaded, too.
    const { commands } = await workOf(redis.client, () => stores.pause(agentKey(), "ann", NOW));
    expect(commands.slice(3)).toEqual([]);
    expect(await stores.inbox(agentKey(`${ROOT}~kid299`))).toMatchObject([{ kind: "pause" }]);
    // A process that has not read the tree yet checks its server first and reads the agent.
    const other = storesOn(redis.server, { prefix });
    onTestFinished(() => other.close());
    expect(await commandsOf(redis.client, () => other.resume(agentKey(), "ann", NOW))).toBeLessThan(8);
  });
});

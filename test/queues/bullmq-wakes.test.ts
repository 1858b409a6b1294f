import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { AgentKey } from "../../src/state/index.ts";
import type { Queues } from "../../src/queues/index.ts";
import { agent, countsOf, Recorder } from "../contracts/queues-fixtures.ts";
import { ownQueuePrefix, queuesOn } from "../support/bullmq-queues.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";

const busy = { ...agent, agentId: "busy" };
const areBusy = async (agents: readonly AgentKey[]): Promise<boolean[]> =>
  agents.map(({ agentId }) => agentId === busy.agentId);

describe.skipIf(!redisProgram)("wakes left when the last worker closes", () => {
  let server: RedisServer;
  let prefix: string;
  let opened: Queues[] = [];
  beforeAll(async () => {
    server = await RedisServer.start({ isLogged: false });
  });
  afterAll(() => server.stop());
  beforeEach(() => {
    prefix = ownQueuePrefix();
  });
  afterEach(async () => {
    await Promise.all(opened.map((queues) => queues.close()));
    opened = [];
  });

  function client(): Queues {
    const queues = queuesOn(server, { prefix });
    opened.push(queues);
    return queues;
  }

  /**
   * A worker that closes while its wakes run; another wake of each agent is requested meanwhile. `taken` are those wakes that
   * it still starts after the first have ended.
   */
  async function leavingWorker(
    areNeeded: (agents: readonly AgentKey[]) => Promise<boolean[]>,
  ): Promise<{ readonly asks: Queues; readonly taken: readonly string[] }> {
    const [asks, works] = [client(), client()];
    const recorder = new Recorder();
    const gate = Promise.withResolvers<void>();
    const { wakes, ...others } = recorder.options(() => gate.promise);
    await works.work({ ...others, wakes: wakes && { ...wakes, areNeeded } });
    for (const one of [agent, busy]) await asks.wake(one);
    await recorder.until(({ begun }) => begun.length === 2);
    for (const one of [agent, busy]) await asks.wake(one);
    const drained = works.drain({ timeoutMs: 20_000 });
    gate.resolve();
    expect(await drained).toEqual({ left: 0 });
    return { asks, taken: recorder.begun.slice(2).map(({ job }) => job.agentId) };
  }

  test("are kept for agents with work, and removed for agents without", async () => {
    const { asks, taken } = await leavingWorker(areBusy);
    const left = taken.includes(busy.agentId) ? [] : [busy.agentId];
    expect(await asks.counts(["wake"])).toMatchObject([{ waiting: left.length, active: 0, delayed: 0 }]);
    const recorder = new Recorder();
    await client().work(recorder.options(async () => "done"));
    await recorder.until(({ ended }) => ended.length === left.length);
    await countsOf(asks, "wake", ({ active, waiting }) => active + waiting === 0);
    expect(recorder.begun.map(({ job: { agentId } }) => agentId)).toEqual(left);
  });

  test("are restored if an item was posted while they were removed", async () => {
    let looks = 0;
    const { asks, taken } = await leavingWorker(async (agents) => {
      looks += 1;
      return agents.map(() => looks > 1);
    });
    expect(await asks.counts(["wake"])).toMatchObject([{ waiting: 2 - taken.length, active: 0, delayed: 0 }]);
  });

  test("are left to another worker if there is one", async () => {
    const looked: string[] = [];
    const other = new Recorder();
    const recorded = other.options(async () => "done");
    // Works on wakes but starts no more: its only slot is occupied.
    const first = Promise.withResolvers<void>();
    const hold = { ...agent, agentId: "hold" };
    const worker = client();
    const run = async () => (await first.promise, "done" as const);
    await worker.work({ ...recorded, wakes: { concurrency: 1, run } });
    await worker.wake(hold);
    await countsOf(worker, "wake", ({ active }) => active === 1);
    const { asks } = await leavingWorker(async (agents) => {
      looked.push(...agents.map(({ agentId }) => agentId));
      return agents.map(() => false);
    });
    expect(looked).toEqual([]);
    first.resolve();
    await countsOf(asks, "wake", ({ active, waiting }) => active + waiting === 0);
  });
});

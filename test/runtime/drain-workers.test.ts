import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool, type Runtime, subagent, type Turn } from "../../src/index.ts";
import { createFakeClock, scriptedModel } from "../../src/testing/index.ts";
import { Deployment } from "../support/deployment.ts";
import { inFull } from "../support/full.ts";
import { loopTurns } from "../support/journal-probes.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";
import { calling, createGate } from "../support/turn-probes.ts";

async function until(isTrue: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (let round = 0; round < 4_000; round += 1) {
    if (await isTrue()) return;
    await loopTurns(5);
  }
  throw new Error(`timed out waiting for: ${what}`);
}

const liveIn = async (runtime: Runtime): Promise<number> => (await runtime.metrics()).liveAgents;

/** An agent of three steps, the second of which waits at a gate. `asked` lists the step of each model call. */
function stepping() {
  const gate = createGate<string>();
  const asked: number[] = [];
  const tool = defineTool({
    name: "look",
    description: "Looks.",
    parameters: z.object({}),
    effect: "none",
    execute: () => "seen",
  });
  const model = scriptedModel(async ({ messages }, { signal }) => {
    const step = messages.filter(({ role }) => role === "tool").length;
    asked.push(step);
    if (step === 1) await gate.pass(signal);
    return step < 2 ? calling("look") : "done";
  });
  return { gate, asked, agents: [defineAgent({ name: "one", model, tools: [tool] })] };
}

describe.skipIf(!redisProgram)("workers on one Redis", () => {
  let server: RedisServer;
  let deployment: Deployment;
  beforeAll(async () => {
    server = await RedisServer.start();
  });
  afterAll(() => server.stop());
  beforeEach(() => {
    deployment = new Deployment(server);
  });
  afterEach(() => deployment.close());

  /** A turn that a client opens and a worker runs, returned once its second step waits at the gate. */
  async function turnAtGate({ gate, agents }: ReturnType<typeof stepping>): Promise<Turn> {
    const client = await deployment.open({ agents, role: "client" });
    const agent = await client.agent("one", { agentId: "a" });
    await agent.start();
    const turn = agent.executeTurn("go");
    await gate.reached();
    return turn;
  }

  it("a worker drained mid-turn waits for its model call, and another continues: no call is lost or made twice", async () => {
    const team = stepping();
    const { gate, asked, agents } = team;
    const first = await deployment.open({ agents, role: "worker" });
    const turn = await turnAtGate(team);
    const drained = first.drain({ timeoutMs: 20_000 });
    await loopTurns(20);
    gate.open("go on");
    expect(await drained).toEqual({ left: 0, leftBehind: [] });
    expect(asked).toEqual([0, 1]);
    await deployment.open({ agents, role: "worker" });
    expect(await turn.result).toMatchObject({ status: "completed", text: "done", steps: 3 });
    expect(asked).toEqual([0, 1, 2]);
  });

  it("a drained worker that kept an agent for its next turn leaves no job behind", async () => {
    const agents = [defineAgent({ name: "one", model: scriptedModel(() => "done") })];
    const clock = createFakeClock();
    const worker = await deployment.open({ agents, role: "worker", clock });
    const client = await deployment.open({ agents, role: "client", clock });
    const agent = await client.agent("one", { agentId: "a" });
    await agent.start();
    await agent.executeTurn("go").result;
    expect(await liveIn(worker)).toBe(1);
    expect(await worker.drain()).toEqual({ left: 0, leftBehind: [] });
    const { queues } = await client.metrics();
    expect(queues).toMatchObject([{ queue: "wake", waiting: 0, active: 0, delayed: 0 }]);
  });

  it("a model call that does not end in time is cut off and repeated by another worker", async () => {
    const team = stepping();
    const { gate, asked, agents } = team;
    const first = await deployment.open({ agents, role: "worker" });
    const turn = await turnAtGate(team);
    const from = performance.now();
    expect((await first.drain({ timeoutMs: 1_000 })).left).toBeGreaterThan(0);
    expect(performance.now() - from).toBeLessThan(4_000);
    gate.open("go on");
    await deployment.open({ agents, role: "worker" });
    expect(await turn.result).toMatchObject({ status: "completed", text: "done" });
    expect(asked).toEqual([0, 1, 1, 2]);
  });

  inFull(() => {
    it("the reconciler of another worker finds an agent whose worker died", async () => {
      const team = stepping();
      const { gate, agents } = team;
      const first = await deployment.join({ agents, role: "worker" });
      const turn = await turnAtGate(team);
      await first.kill();
      const second = await deployment.open({ agents, role: "worker" });
      gate.open("go on");
      expect(await turn.result).toMatchObject({ status: "completed", text: "done" });
      expect((await second.metrics()).turnsEnded).toBe(1);
    }, 30_000);

    it("trees over two workers with room for one agent each finish, and no agent stays in memory", async () => {
      let definition = defineAgent({ name: "level4", model: scriptedModel(() => "deep") });
      for (const level of [3, 2, 1]) {
        const child = definition;
        const ask = calling(
          { name: child.name, arguments: { input: "go" } },
          { name: child.name, arguments: { input: "on" } },
        );
        const model = scriptedModel(({ messages }) => (messages.at(-1)?.role === "tool" ? `${level}` : ask));
        definition = defineAgent({
          name: `level${level}`,
          model,
          tools: [subagent(child, { policy: { maxDepth: 8 } })],
        });
      }
      const agents = [definition];
      const workers = [
        await deployment.open({ agents, role: "worker", work: { agents: 1 } }),
        await deployment.open({ agents, role: "worker", work: { agents: 1 } }),
      ];
      const client = await deployment.open({ agents, role: "client" });
      const agent = await client.agent("level1", { agentId: "a" });
      await agent.start();
      const turn = agent.executeTurn("go");
      const ended = new Set<string>();
      for await (const event of turn) if (event.type === "turn.completed") ended.add(event.agentId);
      expect(await turn.result).toMatchObject({ status: "completed", text: "1" });
      expect(ended.size).toBe(15);
      for (const worker of workers) await until(async () => (await liveIn(worker)) === 0, "no agent lives in a worker");
      const counts = await Promise.all(workers.map(async (worker) => (await worker.metrics()).turnsEnded));
      expect(counts.reduce((sum, count) => sum + count, 0)).toBe(15);
      expect((await client.health()).problems).toEqual([]);
    }, 30_000);
  });
});

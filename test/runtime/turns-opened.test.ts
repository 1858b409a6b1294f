import { expect, it } from "vitest";
import { systemClock } from "../../src/base/index.ts";
import { StoreUnavailableError } from "../../src/errors/index.ts";
import { createRuntime, defineAgent, memoryStores } from "../../src/index.ts";
import { Committer } from "../../src/runtime/agent/committer.ts";
import { scriptedModel } from "../../src/testing/index.ts";

async function openClerk(stores: ReturnType<typeof memoryStores>) {
  const model = scriptedModel(["one", "two", "three"]);
  const runtime = await createRuntime({ agents: [defineAgent({ name: "clerk", model })], stores });
  const agent = await runtime.agent("clerk", { agentId: "desk" });
  await agent.start();
  return { runtime, agent, model };
}

it("a turn of an agent that is idle here costs no command: the commit that begins it opens it", async () => {
  const stores = memoryStores();
  let commands = 0;
  const counted = {
    ...stores,
    openTurn: (...given: Parameters<typeof stores.openTurn>) => {
      commands += 1;
      return stores.openTurn(...given);
    },
  };
  const { runtime, agent } = await openClerk(counted);
  for (const _ of [1, 2]) await agent.executeTurn("go").result;
  expect(commands).toBe(0);
  const { id } = agent.executeTurn("go");
  // While it is being opened the agent is busy for everybody else.
  await expect(agent.executeTurn("too early").id).rejects.toThrow(`busy with turn ${await id}`);
  expect(commands).toBe(1);
  await runtime.shutdown();
});

it("a turn that others have opened meanwhile is found, and both are taken in order", async () => {
  const stores = memoryStores();
  const { runtime, agent } = await openClerk(stores);
  const asked = { input: "from elsewhere", actorId: null, limits: null, ifBusy: "queue" } as const;
  // This process is not told of it.
  await stores.openTurn({ tenant: "default", agentId: "desk" }, asked, 1);
  const turn = agent.executeTurn("go", { ifBusy: "queue" });
  expect(await turn.id).toBe("desk#2");
  expect((await agent.turn("desk#1").result).text).toMatch(/one|two|three/);
  expect((await turn.result).status).toBe("completed");
  await runtime.shutdown();
});

it("a caller is told that the stores take no turn, and may ask again", async () => {
  const stores = memoryStores();
  const full = new StoreUnavailableError("there is no room");
  let isFull = false;
  const filling = {
    ...stores,
    commit: async (...given: Parameters<typeof stores.commit>) => {
      if (isFull) throw full;
      return await stores.commit(...given);
    },
  };
  const { runtime, agent } = await openClerk(filling);
  isFull = true;
  await expect(agent.executeTurn("go").result).rejects.toBe(full);
  expect(await stores.turns({ tenant: "default" })).toEqual([]);
  isFull = false;
  const turn = agent.executeTurn("go");
  expect(await turn.id).toBe("desk#1");
  expect((await turn.result).status).toBe("completed");
  await runtime.shutdown();
});

it("who asked for a turn is told of it before anything is done with its commit", async () => {
  const told: string[] = [];
  const committer = new Committer(
    {
      ...memoryStores(),
      commit: async () => [{ type: "committed", entries: [], cursor: 1, warnings: [], posted: [], timers: [] }],
    },
    systemClock,
    () => 0,
  );
  const opens = {
    kind: "turn",
    key: "turn:desk#1",
    at: 1,
    turnId: "desk#1",
    number: 1,
    input: "go",
    actorId: null,
    limits: null,
  };
  let batch: unknown = { id: "b", opens };
  const asked = Promise.withResolvers<void>();
  void asked.promise.then(() => told.push("the caller"));
  committer.schedule({
    takeBatch: () => {
      const taken = batch;
      batch = undefined;
      return taken as ReturnType<Parameters<Committer["schedule"]>[0]["takeBatch"]>;
    },
    onOpened: () => asked.resolve(),
    onOutcome: () => told.push("the machines"),
    onRefused: () => false,
    onFailure: () => undefined,
  });
  await committer.drained();
  expect(told).toEqual(["the caller", "the machines"]);
});

it("a turn that is aborted once it is open spends nothing if its model was not asked", async () => {
  const { runtime, agent, model } = await openClerk(memoryStores());
  const turn = agent.executeTurn("go");
  await turn.id;
  await turn.abort("no");
  const result = await turn.result;
  expect(result).toMatchObject({ status: "stopped", stopReason: "user_requested" });
  expect(result.spent.tree).toMatchObject({ inputTokens: 0, outputTokens: 0, unconfirmedCalls: 0 });
  expect(model.calls).toHaveLength(0);
  await runtime.shutdown();
});

it("an agent that was created here is started with one commit, which takes its lease", async () => {
  const stores = memoryStores();
  const asked: string[] = [];
  const counted = {
    ...stores,
    acquire: (...given: Parameters<typeof stores.acquire>) => {
      asked.push("acquire");
      return stores.acquire(...given);
    },
    inbox: (...given: Parameters<typeof stores.inbox>) => {
      asked.push("inbox");
      return stores.inbox(...given);
    },
  };
  const { runtime, agent } = await openClerk(counted);
  expect(asked).toEqual([]);
  expect((await agent.executeTurn("go").result).status).toBe("completed");
  await runtime.shutdown();
});

it("an agent that another process has started since it was created here is refused, as ever", async () => {
  const stores = memoryStores();
  const model = scriptedModel(["one"]);
  const runtime = await createRuntime({ agents: [defineAgent({ name: "clerk", model })], stores });
  const agent = await runtime.agent("clerk", { agentId: "desk" });
  const other = { processId: "other", pid: process.pid, bootId: "another boot" };
  await stores.registerProcess(other, Date.now());
  await stores.acquire({ tenant: "default", agentId: "desk" }, other.processId, 60_000, Date.now());
  await expect(agent.start()).rejects.toThrow("is run by process");
  await runtime.shutdown();
});

it("a pause that came before the start is found with it", async () => {
  const stores = memoryStores();
  const model = scriptedModel(["one"]);
  const runtime = await createRuntime({ agents: [defineAgent({ name: "clerk", model })], stores });
  const agent = await runtime.agent("clerk", { agentId: "desk" });
  await stores.pause({ tenant: "default", agentId: "desk" }, "ann", Date.now());
  await agent.start();
  await agent.executeTurn("go").id;
  expect(model.calls).toHaveLength(0);
  await agent.resume();
  expect((await agent.turn("desk#1").result).status).toBe("completed");
  await runtime.shutdown();
});

import { expect, it } from "vitest";
import { StoreUnavailableError } from "../../src/errors/index.ts";
import { createRuntime, defineAgent, memoryStores, type Stores, type TurnOptions } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";

async function openClerk(stores: Stores) {
  const model = scriptedModel(["one", "two", "three"]);
  const runtime = await createRuntime({ agents: [defineAgent({ name: "clerk", model })], stores });
  const agent = await runtime.agent("clerk", { agentId: "desk" });
  await agent.start();
  return { runtime, agent, model };
}

/** Stores that record the turn commands, and the entry types of each commit. */
function watchedStores(): { readonly stores: Stores; readonly writes: unknown[] } {
  const plain = memoryStores();
  const writes: unknown[] = [];
  const stores: Stores = {
    ...plain,
    async openTurn(...given) {
      writes.push("openTurn");
      return await plain.openTurn(...given);
    },
    async commit(batches, ...rest) {
      writes.push(batches.flatMap(({ entries }) => entries.map(({ type }) => type)));
      return await plain.commit(batches, ...rest);
    },
  };
  return { stores, writes };
}

it.each<[string, TurnOptions]>([
  ["nothing else", {}],
  ["a key", { key: "k1" }],
  ["credentials", { auth: { actorId: "ann", credentials: { token: "t" } } }],
  ["a signal", { signal: new AbortController().signal }],
  ["a budget", { budget: { maxSteps: 3 } }],
])("a turn is opened by one command and started by the commit of its first step, with %s", async (_, options) => {
  const { stores, writes } = watchedStores();
  const { runtime, agent } = await openClerk(stores);
  const before = writes.length;
  expect((await agent.executeTurn("go", options).result).status).toBe("completed");
  expect(writes.slice(before)).toEqual([
    "openTurn",
    ["turn.started", "model.requested"],
    ["model.responded", "turn.ended"],
  ]);
  await runtime.shutdown();
});

it("while a turn is being opened the agent is busy for other callers", async () => {
  const { runtime, agent } = await openClerk(memoryStores());
  const { id } = agent.executeTurn("go");
  await expect(agent.executeTurn("too early").id).rejects.toThrow(`busy with turn ${await id}`);
  await runtime.shutdown();
});

it("a turn that another process opened meanwhile is found, and both run in order", async () => {
  const stores = memoryStores();
  const { runtime, agent } = await openClerk(stores);
  const asked = { input: "from elsewhere", actorId: null, limits: null, ifBusy: "queue" } as const;
  // No notification of this turn reaches the process.
  await stores.openTurn({ tenant: "default", agentId: "desk" }, asked, 1);
  const turn = agent.executeTurn("go", { ifBusy: "queue" });
  expect(await turn.id).toBe("desk#2");
  expect((await agent.turn("desk#1").result).text).toMatch(/one|two|three/);
  expect((await turn.result).status).toBe("completed");
  await runtime.shutdown();
});

it("a caller gets the error of stores that refuse the turn, and can try again", async () => {
  const stores = memoryStores();
  const full = new StoreUnavailableError("there is no room");
  let isFull = false;
  const filling: Stores = {
    ...stores,
    openTurn: async (...given) => {
      if (isFull) throw full;
      return await stores.openTurn(...given);
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

it("a turn that is aborted right after it was opened spends nothing if its model was not called", async () => {
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

it("start() is refused if another process has started the agent since it was created here", async () => {
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

it("a pause from before the start is found at the start", async () => {
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

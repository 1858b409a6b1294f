import { expect, it } from "vitest";
import {
  type Agent,
  createRuntime,
  defineAgent,
  InvalidInputError,
  memoryStores,
  type Runtime,
  subagent,
  TurnConflictError,
  type TurnOptions,
  UnsupportedError,
} from "../../src/index.ts";
import { localQueues } from "../../src/queues/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes, stageLeaseMs } from "../support/runtimes.ts";
import { calling, createGate, eventsOfTurn, typesOf } from "../support/turn-probes.ts";

const clerk = () => defineAgent({ name: "clerk", model: scriptedModel(({ messages }) => `I see ${messages.length}`) });

async function started(runtime: Runtime, options: { autoSave?: boolean } = {}): Promise<Agent> {
  const agent = await runtime.agent("clerk", { agentId: "c", ownerId: "ann", ...options });
  await agent.start();
  return agent;
}

function showing(description: string) {
  return { name: "show", description, parameters: { type: "object" } };
}

describeRuntimes("keys of turns", (stage) => {
  const opened = async (): Promise<{ runtime: Runtime; agent: Agent }> => {
    const runtime = await stage().open({ agents: [clerk()] });
    return { runtime, agent: await started(runtime) };
  };

  it("the same key returns the same turn, while it runs and after its end", async () => {
    const { runtime, agent } = await opened();
    const turn = agent.executeTurn("go", { key: "k" });
    const again = agent.executeTurn("go", { key: "k", ifBusy: "supersede" });
    expect(await Promise.all([turn.isReplayed, again.isReplayed])).toEqual([false, true]);
    const result = await turn.result;
    expect(await again.result).toEqual(result);
    const later = agent.executeTurn("go", { key: "k" });
    expect(await later.isReplayed).toBe(true);
    expect(await later.result).toMatchObject({ turnId: "c#1", text: "I see 1" });
    expect(await later.settled).toMatchObject({ status: "completed" });
    expect(typesOf(await eventsOfTurn(later))).toEqual(typesOf(await eventsOfTurn(agent.turn("c#1"))));
    expect(await runtime.turns()).toMatchObject([{ turnId: "c#1", key: "k", status: "completed" }]);
    expect(await agent.executeTurn("go", { key: "l" }).result).toMatchObject({ turnId: "c#2" });
  });

  it("the same key with another input, actor or budget is a conflict and changes nothing", async () => {
    const { runtime, agent } = await opened();
    const given: TurnOptions = { key: "k", auth: { actorId: "ann" }, budget: { maxSteps: 3 } };
    await agent.executeTurn("go", given).result;
    const others: [string, TurnOptions][] = [
      ["stay", given],
      ["go", { ...given, auth: { actorId: "bob" } }],
      ["go", { ...given, auth: undefined }],
      ["go", { ...given, budget: { maxSteps: 4 } }],
    ];
    for (const [input, options] of others) {
      const turn = agent.executeTurn(input, options);
      const error = await turn.id.catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(TurnConflictError);
      expect(error).toMatchObject({ code: "turn_conflict", details: { agentId: "c", key: "k", turnId: "c#1" } });
      await expect(turn.isReplayed).rejects.toBe(error);
      await expect(turn.current()).rejects.toBe(error);
    }
    const parts = agent.executeTurn([{ type: "text", text: "go" }], given);
    await expect(parts.id).rejects.toThrow("another input");
    expect(await runtime.turns()).toHaveLength(1);
    const same = agent.executeTurn("go", {
      ...given,
      ifBusy: "queue",
      trace: { traceparent: `00-${"1".repeat(32)}-${"2".repeat(16)}-01` },
    });
    expect(await same.isReplayed).toBe(true);
  });

  it("a key is 1 to 255 visible ASCII characters", async () => {
    const { agent } = await opened();
    for (const key of ["", " ", "a b", "ä", "a\n", "x".repeat(256), 7]) {
      await expect(agent.executeTurn("go", { key: key as string }).id, String(key)).rejects.toThrow(InvalidInputError);
    }
    expect(await agent.executeTurn("go", { key: `!~${"x".repeat(253)}` }).isReplayed).toBe(false);
  });

  it("the key of a turn that was queued or superseded returns its current state", async () => {
    const gate = createGate<string>();
    const model = scriptedModel((_request, { signal }) => gate.pass(signal));
    const runtime = await stage().open({ agents: [defineAgent({ name: "clerk", model })] });
    const agent = await started(runtime);
    const first = agent.executeTurn("one", { key: "1" });
    await gate.reached();
    expect(await agent.executeTurn("two", { key: "2", ifBusy: "queue" }).id).toBe("c#2");
    expect(await agent.executeTurn("two", { key: "2", ifBusy: "queue" }).id).toBe("c#2");
    expect(await agent.turn("c#2").current()).toEqual({ status: "queued", turnId: "c#2", step: 0 });
    expect(await first.current()).toEqual({ status: "running", turnId: "c#1", step: 1 });
    expect(await agent.executeTurn("three", { key: "3", ifBusy: "supersede" }).id).toBe("c#3");
    await first.result;
    const again = agent.executeTurn("one", { key: "1" });
    expect(await again.current()).toMatchObject({ status: "stopped", stopReason: "user_requested", turnId: "c#1" });
    gate.open("done");
    expect((await agent.executeTurn("two", { key: "2" }).result).text).toBe("done");
    expect((await agent.executeTurn("three", { key: "3" }).result).text).toBe("done");
    expect((await runtime.turns()).map(({ turnId, status }) => [turnId, status])).toEqual([
      ["c#1", "stopped"],
      ["c#2", "completed"],
      ["c#3", "completed"],
    ]);
  });

  it("a known turn is returned even if none can be opened: shut down, cleared, or past its deadline", async () => {
    const { runtime, agent } = await opened();
    const deadline = stage().clock.now() + 60_000;
    const options = { key: "k", budget: { deadline } };
    await agent.executeTurn("go", options).result;
    await agent.clear();
    expect(await agent.executeTurn("go", options).isReplayed).toBe(true);
    stage().clock.advance(61_000);
    expect(await agent.executeTurn("go", options).result).toMatchObject({ turnId: "c#1", status: "completed" });
    await expect(agent.executeTurn("go", { ...options, key: "l" }).id).rejects.toThrow("deadline");
    await agent.shutdown();
    expect(await agent.executeTurn("go", options).id).toBe("c#1");
    await expect(agent.executeTurn("go", { key: "l" }).id).rejects.toThrow("shutdown");
    expect(await runtime.turns()).toHaveLength(1);
  });

  it("autoSave: false: keys work in memory, across a save, and in the process that opens the agent next", async () => {
    const runtime = await stage().open({ agents: [clerk()] });
    const agent = await started(runtime, { autoSave: false });
    await agent.executeTurn("go", { key: "k" }).result;
    expect(await agent.executeTurn("go", { key: "k" }).isReplayed).toBe(true);
    expect(await runtime.turns({ ownerId: "ann" })).toMatchObject([{ turnId: "c#1", key: "k" }]);
    expect(await stage().look().turns({ tenant: "default" })).toEqual([]);
    await agent.shutdown();
    expect(await stage().look().turns({ tenant: "default" })).toMatchObject([{ turnId: "c#1", key: "k" }]);
    const next = await stage().open({ agents: [clerk()] });
    const there = await started(next);
    expect(await there.executeTurn("go", { key: "k" }).isReplayed).toBe(true);
    await expect(there.executeTurn("stay", { key: "k" }).id).rejects.toThrow(TurnConflictError);
  });

  it("autoSave: false: a turn sent by another process keeps its key", async () => {
    const runtime = await stage().open({ agents: [clerk()] });
    const agent = await started(runtime, { autoSave: false });
    await agent.executeTurn("first").result;
    await agent.saveState();
    const other = await stage().open({ agents: [clerk()] });
    const there = await other.find("c");
    const command = { key: "k", ifBusy: "queue" } as const;
    expect(await there.executeTurn("go", command).isReplayed).toBe(false);
    expect(await there.executeTurn("go", command).isReplayed).toBe(true);
    await agent.saveState();
    const again = agent.executeTurn("go", command);
    expect(await again.isReplayed).toBe(true);
    expect(await again.result).toMatchObject({ turnId: "c#2", status: "completed" });
    await agent.saveState();
    expect(await stage().look().turns({ tenant: "default" })).toMatchObject([{ key: null }, { key: "k" }]);
  });

  it("client tools are part of the compared command", async () => {
    const model = scriptedModel("fine");
    const runtime = await stage().open({ agents: [defineAgent({ name: "clerk", model, clientTools: true })] });
    const agent = await started(runtime);
    await agent.executeTurn("go", { key: "k", clientTools: [showing("Shows it.")] }).result;
    expect(await agent.executeTurn("go", { key: "k", clientTools: [showing("Shows it.")] }).isReplayed).toBe(true);
    await expect(agent.executeTurn("go", { key: "k" }).id).rejects.toThrow(TurnConflictError);
    const other = agent.executeTurn("go", { key: "k", clientTools: [showing("Shows more.")] });
    await expect(other.id).rejects.toThrow(TurnConflictError);
  });

  it("subagents accept no keys", async () => {
    const aide = defineAgent({ name: "aide", model: scriptedModel("fine") });
    const lead = defineAgent({
      name: "clerk",
      model: scriptedModel([calling("aide"), "fine"]),
      tools: [subagent(aide)],
    });
    const runtime = await stage().open({ agents: [lead] });
    const agent = await started(runtime);
    const { agent: child } = await agent.spawn(aide, "help", { key: "x" });
    await expect(child.executeTurn("more", { key: "k", ifBusy: "queue" }).id).rejects.toThrow(UnsupportedError);
  });
});

describeRuntimes(
  "keys of turns across processes",
  (stage) => {
    it("50 equal commands at once from two processes open one turn and get 50 equal results", async () => {
      const [here, there] = [await stage().open({ agents: [clerk()] }), await stage().open({ agents: [clerk()] })];
      const [mine, theirs] = [await started(here), await there.find("c")];
      const turns = Array.from({ length: 50 }, (_, index) =>
        (index % 2 === 0 ? mine : theirs).executeTurn("go", { key: "k" }),
      );
      const ids = await Promise.all(turns.map((turn) => turn.id));
      expect(new Set(ids)).toEqual(new Set(["c#1"]));
      const replayed = await Promise.all(turns.map((turn) => turn.isReplayed));
      expect(replayed.filter((one) => !one)).toHaveLength(1);
      const results = Promise.all(turns.map((turn) => turn.result));
      await mine.turn("c#1").result;
      stage().clock.advance(5_000);
      for (const result of await results) expect(result).toMatchObject({ turnId: "c#1", text: "I see 1" });
      expect(await here.turns()).toHaveLength(1);
      expect(await mine.getMessages()).toHaveLength(2);
    });

    it("if a process dies between the command and its answer, the retry gets the turn and continues it", async () => {
      const dying = await stage().openProcess({ agents: [clerk()] });
      const agent = await started(dying.runtime);
      const openTurn = dying.runtime.stores.openTurn.bind(dying.runtime.stores);
      const stored = Promise.withResolvers<void>();
      Object.assign(dying.runtime.stores, {
        openTurn: async (...given: Parameters<typeof openTurn>) => {
          await openTurn(...given);
          stored.resolve();
          return await new Promise<never>(() => undefined);
        },
      });
      agent.executeTurn("go", { key: "k" }).id.catch(() => undefined);
      await stored.promise;
      dying.kill();
      stage().clock.advance(stageLeaseMs + 1);
      stage().expireLeases();
      const next = await stage().open({ agents: [clerk()] });
      const there = await started(next);
      const turn = there.executeTurn("go", { key: "k" });
      expect(await turn.isReplayed).toBe(true);
      expect(await turn.result).toMatchObject({ turnId: "c#1", status: "completed", text: "I see 1" });
      expect(await there.getMessages()).toHaveLength(2);
      expect(await next.turns()).toMatchObject([{ turnId: "c#1", status: "completed" }]);
    });
  },
  ["sqlite"],
);

it("a client that runs no agents returns a known turn and reads its state", async () => {
  const stores = memoryStores();
  const runtime = await createRuntime({ agents: [clerk()], stores });
  const agent = await started(runtime);
  await agent.executeTurn("go", { key: "k" }).result;
  const client = await createRuntime({
    agents: [clerk()],
    stores,
    role: "client",
    queues: { ...localQueues(), kind: "shared" },
  });
  const there = await client.find("c");
  const turn = there.executeTurn("go", { key: "k" });
  expect(await turn.isReplayed).toBe(true);
  expect(await turn.current()).toMatchObject({ status: "completed", turnId: "c#1" });
  expect(await client.turns({ ownerId: "ann", status: "completed" })).toMatchObject([{ turnId: "c#1" }]);
  await client.shutdown();
  await runtime.shutdown();
});

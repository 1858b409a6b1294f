import { afterEach, describe, expect, it } from "vitest";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type AgentDefinition,
  createRuntime,
  defineAgent,
  defineTool,
  localQueues,
  type Queues,
  type Runtime,
  type RuntimeOptions,
  type Stores,
  subagent,
  textOf,
} from "../../src/index.ts";
import { LONGEST_KEPT_MS } from "../../src/machines/index.ts";
import { DEFAULT_IDLE } from "../../src/runtime/api/roles.ts";
import { currentProcess } from "../../src/stores/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { createFakeClock, scriptedModel } from "../../src/testing/index.ts";
import { z } from "zod";
import { inFull } from "../support/full.ts";
import { calling, createGate } from "../support/turn-probes.ts";
import { loopTurns } from "../support/journal-probes.ts";

const open: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close();
});

/** Opens processes that share a file and the queues of one process. */
function deployment() {
  const folder = mkdtempSync(join(tmpdir(), "troupe-roles-"));
  open.push({ close: async () => rmSync(folder, { recursive: true, force: true }) });
  const local = localQueues();
  /** Ids of the agents that wake() was called for. */
  const wakes: string[] = [];
  const wake: Queues["wake"] = async (key, trace) => {
    wakes.push(key.agentId);
    await local.wake(key, trace);
  };
  const queues: Queues = { ...local, wake, kind: "shared" };
  const path = join(folder, "t.db");
  const join_ = async (options: Partial<RuntimeOptions> & { agents: readonly AgentDefinition[] }): Promise<Runtime> => {
    const mine: Queues = options.role === "client" ? { ...queues, close: async () => undefined } : queues;
    const runtime = await createRuntime({ stores: sqliteStores(path), queues: mine, ...options });
    open.push({ close: () => runtime.shutdown() });
    return runtime;
  };
  const stores = (): Stores => {
    const opened = sqliteStores(path);
    open.push(opened);
    return opened;
  };
  return { queues, wakes, stores, join: join_ };
}

/** A worker, a client, and an agent that the client has started. */
async function clientAndWorker(definition: AgentDefinition, work?: RuntimeOptions["work"]) {
  const { join } = deployment();
  const agents = [definition];
  const worker = await join({ agents, role: "worker", work });
  const client = await join({ agents, role: "client" });
  const agent = await client.agent(definition.name, { agentId: "a" });
  await agent.start();
  return { worker, client, agent };
}

async function untilParked(worker: Runtime): Promise<void> {
  await untilLive(worker, 0);
}

async function untilLive(worker: Runtime, count: number): Promise<void> {
  // An agent whose turn has just ended is kept for a moment.
  for (const end = performance.now() + 10_000; performance.now() < end; ) {
    if ((await worker.metrics()).liveAgents === count) return;
    await loopTurns(5);
  }
  throw new Error(`${(await worker.metrics()).liveAgents} live agents, expected ${count}`);
}

describe("a client and a worker", () => {
  it("the worker runs a turn that a client opens, and its stream and result reach the client", async () => {
    const { worker, client, agent } = await clientAndWorker(
      defineAgent({ name: "one", model: scriptedModel(() => "hello") }),
    );
    expect(agent.state.status).toBe("ready");
    const turn = agent.executeTurn("go");
    const seen: string[] = [];
    for await (const event of turn) seen.push(event.type);
    expect((await turn.result).text).toBe("hello");
    expect(seen).toContain("turn.completed");
    await agent.clear();
    await untilParked(worker);
    expect(await client.metrics()).toMatchObject({ liveAgents: 0, turnsEnded: 0 });
    expect(await worker.metrics()).toMatchObject({ liveAgents: 0, turnsEnded: 1 });
    expect(await agent.getMessages()).toEqual([]);
    await agent.shutdown();
    expect(agent.state.status).toBe("shutdown");
    await agent.start();
    expect((await agent.executeTurn("again").result).text).toBe("hello");
  });

  it("a turn whose end arrives before the answer to the command that opens it has its result", async () => {
    const agents = [defineAgent({ name: "one", model: scriptedModel(() => "hello") })];
    const { join, queues, stores } = deployment();
    await join({ agents, role: "worker" });
    const own = stores();
    let isDeaf = false;
    const slow: Stores = {
      ...own,
      onForeignWrite: (listener) => own.onForeignWrite((writes) => (isDeaf ? undefined : listener(writes))),
      openTurn: async (key, command, now) => {
        const outcome = await own.openTurn(key, command, now);
        const heard = Promise.withResolvers<void>();
        const look = async (): Promise<void> => {
          if ((await own.readAgent(key))?.openTurnId === null) heard.resolve();
        };
        // Runs after the runtime's listener, which was added first and gets no more writes.
        const end = own.onForeignWrite(() => void look());
        await queues.wake(key);
        await heard.promise;
        isDeaf = true;
        end();
        return outcome;
      },
    };
    // The fake clock also stops its heartbeats, which would look for missed writes.
    const client = await join({ agents, role: "client", stores: slow, clock: createFakeClock() });
    const agent = await client.agent("one", { agentId: "a" });
    await agent.start();
    expect((await agent.executeTurn("go").result).text).toBe("hello");
    expect(agent.state).toMatchObject({ status: "ready", turnCount: 1, openTurnId: null });
  });

  it.each([
    { places: 1, kept: 0 },
    { places: 4, kept: 1 },
  ])("a worker with room for $places agents keeps $kept after their turns", async ({ places, kept }) => {
    const agents = [defineAgent({ name: "one", model: scriptedModel(() => "hello") })];
    const { join } = deployment();
    const clock = createFakeClock();
    const worker = await join({ agents, role: "worker", work: { agents: places }, clock });
    const client = await join({ agents, role: "client" });
    const agent = await client.agent("one", { agentId: "a" });
    await agent.start();
    await agent.executeTurn("go").result;
    await untilLive(worker, kept);
    const { wakes } = await worker.metrics();
    expect((await agent.executeTurn("and on").result).text).toBe("hello");
    await untilLive(worker, kept);
    expect((await worker.metrics()).wakes).toBe(kept === 1 ? wakes : wakes + 1);
    clock.advance(DEFAULT_IDLE.keptMs - 1);
    await loopTurns(5);
    expect((await worker.metrics()).liveAgents).toBe(kept);
    clock.advance(1);
    await untilLive(worker, 0);
    await agent.shutdown();
  });

  it("the agent kept for longest is released when another one needs the last free slots", async () => {
    const agents = [defineAgent({ name: "one", model: scriptedModel(() => "hello") })];
    const { join, wakes } = deployment();
    const clock = createFakeClock();
    const worker = await join({ agents, role: "worker", work: { agents: 4 }, clock });
    const client = await join({ agents, role: "client", clock });
    const turnOf = async (agentId: string): Promise<void> => {
      const agent = await client.agent("one", { agentId });
      await agent.start();
      await agent.executeTurn("go").result;
    };
    for (const agentId of ["a", "b", "c"]) await turnOf(agentId);
    await turnOf("a");
    await untilLive(worker, 3);
    await turnOf("d");
    await untilLive(worker, 3);
    for (const agentId of ["c", "a", "d"]) await turnOf(agentId);
    expect(wakes).toEqual(["a", "b", "c", "d"]);
    await turnOf("b");
    expect(wakes).toEqual(["a", "b", "c", "d", "b"]);
  });

  it.each(["clear", "shutdown"] as const)("a kept agent is released when a client needs it: %s", async (what) => {
    const agents = [defineAgent({ name: "one", model: scriptedModel(() => "hello") })];
    const { join } = deployment();
    const clock = createFakeClock();
    const worker = await join({ agents, role: "worker", clock });
    const client = await join({ agents, role: "client", clock });
    const agent = await client.agent("one", { agentId: "a" });
    await agent.start();
    await agent.executeTurn("go").result;
    await untilLive(worker, 1);
    let isOver = false;
    const changing = agent[what]().finally(() => (isOver = true));
    // The clock does not advance until the worker has released the agent.
    await untilLive(worker, 0);
    for (let passed = 0; !isOver && passed < DEFAULT_IDLE.keptMs; passed += 50) {
      clock.advance(50);
      await loopTurns(5);
    }
    await changing;
    expect(agent.state.status).toBe(what === "clear" ? "ready" : "shutdown");
    await agent.start();
    expect((await agent.executeTurn("again").result).text).toBe("hello");
  });

  inFull(() => {
    it("a kept agent is not woken for its next turn, and is released after a minute of turns", async () => {
      const agents = [defineAgent({ name: "one", model: scriptedModel(() => "hello") })];
      const { join, wakes } = deployment();
      const clock = createFakeClock();
      const worker = await join({ agents, role: "worker", work: { agents: 4 }, clock });
      const client = await join({ agents, role: "client", clock });
      const agent = await client.agent("one", { agentId: "a" });
      await agent.start();
      await agent.executeTurn("go").result;
      const pause = DEFAULT_IDLE.keptMs - 10;
      for (let passed = 0; passed < LONGEST_KEPT_MS; passed += pause) {
        expect((await worker.metrics()).liveAgents).toBe(1);
        clock.advance(pause);
        await agent.executeTurn("and on").result;
      }
      expect(wakes).toEqual(["a"]);
      clock.advance(pause);
      await untilLive(worker, 0);
      await agent.executeTurn("still").result;
      expect(wakes).toEqual(["a", "a"]);
    });
  });

  it.each([
    ["another machine has", { pid: process.pid, bootId: "another" }, false],
    ["a process that lives has", { pid: process.pid }, false],
    ["a process that is dead had", { pid: 2 ** 22 + 1 }, true],
  ])("an agent that %s is woken only if no other process handles its posts", async (who, holder, isWoken) => {
    // A process found running counts as running for a moment, so each row uses another process.
    const processId = `theirs, ${who}`;
    const agents = [defineAgent({ name: "one", model: scriptedModel(() => "hello") })];
    const { join, wakes, stores } = deployment();
    const client = await join({ agents, role: "client" });
    const agent = await client.agent("one", { agentId: "a" });
    await agent.start();
    const theirs = stores();
    await theirs.registerProcess({ ...currentProcess(processId), ...holder }, Date.now());
    const key = { tenant: "default", agentId: "a" };
    expect(await theirs.acquire(key, processId, 60_000, Date.now())).toMatchObject({ type: "acquired" });
    const turn = agent.executeTurn("go");
    await turn.id;
    await client.agent("one", { agentId: "b" }).then((other) => other.start());
    await loopTurns(50);
    expect(wakes).toEqual(isWoken ? ["a"] : []);
  });

  it("posts to an idle agent that its worker is releasing are left to another process", async () => {
    const agents = [defineAgent({ name: "one", model: scriptedModel(() => "hello") })];
    const { join, wakes, stores } = deployment();
    const gate = createGate<null>();
    const theirs = stores();
    const held: Stores = {
      ...theirs,
      release: async (...given) => {
        await gate.pass();
        return await theirs.release(...given);
      },
    };
    const clock = createFakeClock();
    const worker = await join({ agents, role: "worker", work: { agents: 4 }, clock, stores: held });
    const client = await join({ agents, role: "client", clock });
    const agent = await client.agent("one", { agentId: "a" });
    await agent.start();
    await agent.executeTurn("go").result;
    const left = worker.drain();
    await gate.reached();
    await agent.executeTurn("and on").id;
    await loopTurns(50);
    expect(wakes).toEqual(["a"]);
    gate.open(null);
    await left;
    expect(wakes).toEqual(["a", "a"]);
  });

  it("a turn that waits for a person occupies no worker, and continues once it is answered", async () => {
    const pay = defineTool({
      name: "pay",
      description: "Pays.",
      parameters: z.object({}),
      effect: "once",
      needsApproval: true,
      execute: async () => "paid",
    });
    const model = scriptedModel(({ messages }) => (messages.at(-1)?.role === "tool" ? "done" : calling("pay")));
    const { worker, client, agent } = await clientAndWorker(defineAgent({ name: "one", model, tools: [pay] }));
    const turn = agent.executeTurn("go");
    const rest = await turn.settled;
    expect(rest.status).toBe("waiting");
    await untilParked(worker);
    expect((await worker.metrics()).parked).toBe(1);
    const [request] = await client.requests();
    await client.decide(request?.requestId ?? "", { verdict: "approved" });
    expect((await turn.result).text).toBe("done");
  });

  it("parents and children five levels deep finish although only one agent works at a time", async () => {
    let definition = defineAgent({ name: "level5", model: scriptedModel(() => "deep") });
    for (const level of [4, 3, 2, 1]) {
      const child = definition;
      const model = scriptedModel(({ messages }) =>
        messages.at(-1)?.role === "tool" ? `${level}` : calling({ name: child.name, arguments: { input: "go" } }),
      );
      const tools = [subagent(child, { policy: { maxDepth: 8 } })];
      definition = defineAgent({ name: `level${level}`, model, tools });
    }
    const { worker, client, agent } = await clientAndWorker(definition, { agents: 1 });
    const result = await agent.executeTurn("go").result;
    expect(result).toMatchObject({ status: "completed", text: "1" });
    expect((await client.list({ rootAgentId: "a" })).length).toBe(5);
    await untilParked(worker);
  });

  it("pause, resume and abort of a client reach an agent that runs in a worker", async () => {
    const gate = createGate<string>();
    const { worker, agent } = await clientAndWorker(
      defineAgent({ name: "one", model: scriptedModel((_request, { signal }) => gate.pass(signal)) }),
    );
    const turn = agent.executeTurn("go");
    await gate.reached();
    await agent.pause({ now: true });
    expect(agent.state.status).toBe("paused");
    await untilParked(worker);
    await agent.resume();
    await gate.reached();
    await agent.abort("enough");
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "user_requested" });
  });

  it("a turn that waits for a queued tool occupies no worker, and continues with its result", async () => {
    const gate = createGate<string>();
    const browse = defineTool({
      name: "browse",
      description: "Looks at a page.",
      parameters: z.object({}),
      effect: "none",
      queue: "browser",
      execute: async (_args, { signal }) => await gate.pass(signal),
    });
    const model = scriptedModel(({ messages }) => {
      const last = messages.at(-1);
      return last?.role === "tool" ? `read: ${textOf(last.content)}` : calling("browse");
    });
    const { worker, agent } = await clientAndWorker(defineAgent({ name: "one", model, tools: [browse] }));
    const turn = agent.executeTurn("go");
    await gate.reached();
    await untilParked(worker);
    expect((await worker.metrics()).parked).toBe(1);
    gate.open("a page");
    expect((await turn.result).text).toBe("read: a page");
    await agent.shutdown();
    await untilParked(worker);
    expect((await worker.metrics()).toolJobs).toBeGreaterThan(0);
  });

  it("of two children that share a budget one waits for room without being in memory, and both finish", async () => {
    const gate = createGate<string>();
    const child = defineAgent({
      name: "child",
      model: scriptedModel((_request, { signal }) => gate.pass(signal)),
      maxOutputTokens: 500,
    });
    const ask = { name: "child", arguments: { input: "go" } };
    const lead = scriptedModel(({ messages }) => (messages.at(-1)?.role === "tool" ? "both" : calling(ask, ask)));
    const { worker, agent } = await clientAndWorker(
      defineAgent({
        name: "lead",
        model: lead,
        tools: [subagent(child)],
        maxOutputTokens: 300,
        budget: { maxTokens: 1_400 },
      }),
      { agents: 1 },
    );
    const turn = agent.executeTurn("go");
    await gate.reached();
    gate.open("told");
    expect(await turn.result).toMatchObject({ status: "completed", text: "both" });
    await untilParked(worker);
  });
});

describe("options that a role refuses", () => {
  const agents = [defineAgent({ name: "one", model: scriptedModel(() => "hello") })];

  it.each([
    [{ role: "boss" as "all" }, 'role is the text "boss"; expected "all", "client" or "worker"'],
    [{ role: "worker" as const }, "stores that other processes share"],
    [{ work: { agents: 0 } }, "work.agents is 0"],
  ])("%j", async (options, message) => {
    await expect(createRuntime({ agents, ...options })).rejects.toThrow(message);
  });

  it("a client keeps no agent in memory and runs no work", async () => {
    const { join, queues } = deployment();
    const client = await join({ agents, role: "client" });
    await expect(client.agent("one", { autoSave: false })).rejects.toThrow('use role "all"');
    await expect(join({ agents, role: "client", queues, work: { agents: 2 } })).rejects.toThrow("does no work");
  });
});

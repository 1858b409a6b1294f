import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import {
  createRuntime,
  defineAgent,
  defineTool,
  type Runtime,
  type Stores,
  type TroupeEvent,
  type Turn,
} from "../../src/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { ownQueuePrefix, queuesOn } from "../support/bullmq-queues.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";
import { calling, createGate } from "../support/turn-probes.ts";

/** Stores without room for a large text until `makeRoom` is called. */
interface FullStores {
  readonly stores: Stores;
  /** The same stores with room. */
  again(): Stores;
  fill(): Promise<void>;
  makeRoom(): Promise<void>;
  close(): Promise<void>;
}

const LARGE = "parcel ".repeat(150_000);
const MAX_BYTES = 2_000_000;

async function onSqlite(): Promise<FullStores> {
  const folder = mkdtempSync(join(tmpdir(), "troupe-full-"));
  const file = join(folder, "full.db");
  const stores = sqliteStores(file, { maxBytes: MAX_BYTES });
  const other = new DatabaseSync(file);
  const run = async (sql: string): Promise<void> => other.exec(sql);
  await run("CREATE TABLE others (data BLOB)");
  return {
    stores,
    again: () => sqliteStores(file),
    fill: () => run(`INSERT INTO others VALUES (zeroblob(${MAX_BYTES - 400_000}))`),
    makeRoom: () => run("DELETE FROM others"),
    close: async () => {
      other.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function onRedis(): Promise<FullStores> {
  const server = await RedisServer.start();
  const client = server.client();
  const prefix = ownPrefix();
  const run = async (bytes: string): Promise<void> => {
    await client.config("SET", "maxmemory", bytes);
  };
  return {
    stores: storesOn(server, { prefix, timeoutMs: 1_000 }),
    again: () => storesOn(server, { prefix }),
    fill: () => run("1"),
    makeRoom: () => run("0"),
    close: async () => {
      client.disconnect();
      await server.stop();
    },
  };
}

const openFull = { sqlite: onSqlite, redis: onRedis } as const;
const names = redisProgram ? (["sqlite", "redis"] as const) : (["sqlite"] as const);

describe.each(names)("full stores in mid-turn (%s)", (name) => {
  let full: FullStores;
  let runtime: Runtime;
  let turn: Turn;
  let warned: string[];
  const emit = vi.spyOn(process, "emitWarning");

  const clerk = () => {
    const fetch = defineTool({
      name: "fetch",
      description: "Fetches a large text.",
      parameters: z.object({}),
      maxOutputCharacters: 2_000_000,
      execute: async () => {
        await full.fill();
        return LARGE;
      },
    });
    const model = scriptedModel(({ messages }) => {
      const last = messages.at(-1);
      if (last?.role === "tool") return "done";
      return last?.content === "fetch it" ? calling("fetch") : "small";
    });
    return defineAgent({ name: "clerk", model, tools: [fetch] });
  };

  /** Resolves with the stream's warning that the stores refuse the turn's write. */
  const told = async (): Promise<TroupeEvent> => {
    for await (const event of turn) if (event.type === "warning" && event.code === "store_unavailable") return event;
    throw new Error("the turn ended without a warning");
  };

  beforeEach(async () => {
    warned = [];
    emit.mockReset().mockImplementation((message, options) => {
      if (typeof options === "object" && "code" in options) warned.push(`${options.code}: ${String(message)}`);
    });
    full = await openFull[name]();
    runtime = await createRuntime({ agents: [clerk()], stores: full.stores, leaseMs: 60_000 });
    const agent = await runtime.agent("clerk", { agentId: "clerk-1" });
    await agent.start();
    turn = agent.executeTurn("fetch it");
  });
  afterEach(async () => {
    await runtime.shutdown({ timeoutMs: 500 });
    await full.close();
  });

  it("warn the turn's stream and the process and show in health(), and the turn continues once there is room", async () => {
    const event = await told();
    expect(event).toMatchObject({ agentId: "clerk-1", turnId: "clerk-1#1", cursor: null });
    expect(warned).toEqual([expect.stringMatching(/^TROUPE_STORES_REFUSE: a commit of agent clerk-1 was refused/)]);
    const { isHealthy, problems } = await runtime.health();
    expect(isHealthy).toBe(false);
    expect(problems).toEqual([expect.stringMatching(/^the stores refuse commits of 1 agent of this process: /)]);
    await full.makeRoom();
    expect(await turn.result).toMatchObject({ status: "completed", text: "done" });
    expect((await runtime.health()).problems).toEqual([]);
    const replayed: string[] = [];
    for await (const { type } of runtime.follow("clerk-1")) {
      replayed.push(type);
      if (type === "turn.completed") break;
    }
    expect(replayed).not.toContain("warning");
  });

  it("shutdown() respects its timeout and names the agent left behind, and the turn continues later", async () => {
    await told();
    const lost = turn.result.catch((error: unknown) => error);
    const from = performance.now();
    await runtime.shutdown({ timeoutMs: 1_000 });
    expect(performance.now() - from).toBeLessThan(5_000);
    expect(await lost).toMatchObject({ code: "turn_interrupted" });
    expect(warned.at(-1)).toMatch(/^TROUPE_LEFT_BEHIND: this runtime has left agents behind: clerk-1#1: /);
    await full.makeRoom();
    runtime = await createRuntime({ agents: [clerk()], stores: full.again(), leaseMs: 1_000 });
    const agent = await runtime.find("clerk-1");
    const carriedOn = agent.turn("clerk-1#1").result;
    await vi.waitFor(() => agent.start(), 30_000);
    await vi.waitFor(() => full.makeRoom(), 30_000);
    expect(await carriedOn).toMatchObject({ status: "completed" });
  });

  it.runIf(name === "sqlite")("abort() ends the turn if there is room for its end", async () => {
    const agent = await runtime.find("clerk-1");
    await told();
    await turn.abort("enough");
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "user_requested" });
    expect(await agent.executeTurn("hello").result).toMatchObject({ status: "completed", text: "small" });
  });

  it.runIf(name === "sqlite")("accept the writes of other agents, even if sent in the same batch", async () => {
    const other = await runtime.agent("clerk", { agentId: "clerk-2" });
    await other.start();
    await told();
    expect(await other.executeTurn("hello").result).toMatchObject({ status: "completed", text: "small" });
  });

  it.runIf(name === "redis")("refuse an abort with an error, within the timeout", async () => {
    await told();
    await expect(turn.abort("enough")).rejects.toMatchObject({ code: "store_unavailable" });
    await full.makeRoom();
    expect(await turn.result).toMatchObject({ status: "completed" });
  });
});

describe.skipIf(!redisProgram)("a full Redis while a worker runs a client's turn", () => {
  it("the client gets warnings, in the turn's stream too, and the turn continues once there is room", async () => {
    const warned: string[] = [];
    const emit = vi.spyOn(process, "emitWarning").mockImplementation((message) => void warned.push(String(message)));
    const server = await RedisServer.start({ isLogged: false });
    const raw = server.client();
    const [prefix, queuePrefix] = [ownPrefix(), ownQueuePrefix()];
    const gate = createGate<string>();
    const open = (role: "client" | "worker") => {
      const model = scriptedModel((_request, { signal }) => gate.pass(signal));
      return createRuntime({
        agents: [defineAgent({ name: "thinker", model })],
        stores: storesOn(server, { prefix, timeoutMs: 1_000 }),
        queues: queuesOn(server, { prefix: queuePrefix }),
        leaseMs: 900,
        role,
      });
    };
    const worker = await open("worker");
    const client = await open("client");
    const agent = await client.agent("thinker", { agentId: "thinker-1" });
    await agent.start();
    const turn = agent.executeTurn("think");
    const events = turn[Symbol.asyncIterator]();
    for (let next = await events.next(); next.value?.type !== "step.started"; next = await events.next()) {
      expect(next.done).toBe(false);
    }
    await gate.reached();
    await raw.config("SET", "maxmemory", "1");
    // One commit contains the answer and the turn's end.
    gate.open("thought");
    let told = await events.next();
    while (!told.done && told.value.type !== "warning") told = await events.next();
    expect(told.value).toMatchObject({ type: "warning", code: "store_unavailable", turnId: "thinker-1#1" });
    const heartbeat = expect.stringMatching(/^the heartbeat could not be written: .*memory is full/);
    await vi.waitFor(() => expect(warned).toContainEqual(heartbeat), 30_000);
    await raw.config("SET", "maxmemory", "0");
    expect(await turn.result).toMatchObject({ status: "completed", text: "thought" });
    await Promise.all([client, worker].map((runtime) => runtime.shutdown({ timeoutMs: 500 })));
    raw.disconnect();
    await server.stop();
    emit.mockRestore();
  }, 120_000);
});

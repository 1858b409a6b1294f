import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import {
  createRuntime,
  defineAgent,
  defineTool,
  type Runtime,
  type RuntimeOptions,
  subagent,
  type Turn,
} from "../../src/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { queuesOn, ownQueuePrefix } from "../support/bullmq-queues.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";
import { calling, createGate } from "../support/turn-probes.ts";

/** A process sends three heartbeats per lease. */
const leaseMs = 900;

const agents = () => {
  const pay = defineTool({
    name: "pay",
    description: "Pays.",
    parameters: z.object({}),
    needsApproval: true,
    execute: () => "paid",
  });
  const paying = scriptedModel(({ messages }) => (messages.at(-1)?.role === "tool" ? "done" : calling("pay")));
  const asking = { toolCalls: [{ name: "clerk", arguments: { input: "pay" } }] };
  const leading = scriptedModel(({ messages }) => (messages.at(-1)?.role === "tool" ? "over" : asking));
  const clerk = defineAgent({ name: "clerk", model: paying, tools: [pay] });
  const lead = defineAgent({ name: "lead", model: leading, tools: [subagent(clerk, { description: "Pays." })] });
  return [clerk, lead];
};

async function followed(runtime: Runtime, rootAgentId: string): Promise<void> {
  for await (const event of runtime.follow(rootAgentId)) expect(event).toBeDefined();
}

async function streamed(turn: Turn): Promise<void> {
  for await (const event of turn) expect(event).toBeDefined();
}

/** The outcomes of all who wait for the turn. */
function toldOf(runtime: Runtime, turn: Turn, rootAgentId: string): Promise<unknown>[] {
  const waits = [turn.result, streamed(turn), followed(runtime, rootAgentId)];
  return waits.map((wait) => wait.catch((error: unknown) => error));
}

async function openRequestOf(turn: Turn) {
  const rest = await turn.settled;
  const [request] = "requests" in rest ? rest.requests : [];
  return { requestId: request?.requestId ?? "", agentId: request?.agentId ?? "" };
}

describe.skipIf(!redisProgram)("a damaged record that a worker reads, on Redis", () => {
  let server: RedisServer;
  let raw: Redis;
  let prefix: string;
  let queuePrefix: string;
  let opened: Runtime[];
  let client: Runtime;
  let worker: Runtime;
  const warned = vi.spyOn(process, "emitWarning");
  beforeAll(async () => {
    server = await RedisServer.start({ isLogged: false });
    raw = server.client();
  });
  afterAll(async () => {
    raw.disconnect();
    await server.stop();
  });
  beforeEach(async () => {
    warned.mockReset().mockReturnValue();
    prefix = ownPrefix();
    queuePrefix = ownQueuePrefix();
    opened = [];
    client = await open("client");
    worker = await open("worker");
  });
  afterEach(async () => {
    await Promise.all(opened.map((runtime) => runtime.shutdown({ timeoutMs: 500 })));
  });

  const open = async (role: RuntimeOptions["role"]): Promise<Runtime> => {
    const stores = storesOn(server, { prefix });
    const queues = queuesOn(server, { prefix: queuePrefix });
    const runtime = await createRuntime({ agents: agents(), stores, queues, leaseMs, role });
    opened.push(runtime);
    return runtime;
  };
  /** Replaces the worker by one with an empty memory. */
  const replaceWorker = async (): Promise<void> => {
    await worker.shutdown();
    worker = await open("worker");
  };
  /** Damages a row of the tree. Returns a function that repairs it. */
  const damage = async (field: string): Promise<() => Promise<unknown>> => {
    const key = `${prefix}{default/a-1}:rows`;
    const text = await raw.hget(key, field);
    expect(text).not.toBeNull();
    await raw.hset(key, field, (text ?? "").replace(/\|[^]*/, "|{}"));
    return () => raw.hset(key, field, text ?? "");
  };
  const damageMessages = async (): Promise<void> => {
    const [key = ""] = await raw.keys(`${prefix}{default/a-1}:messages:a-1`);
    for (const id of await raw.hkeys(key)) await raw.hset(key, id, "{}");
  };
  const damageJournal = async (): Promise<void> => {
    const key = `${prefix}{default/a-1}:journal`;
    const rows = await raw.xrange(key, "-", "+");
    await raw.del(key);
    for (const [id, fields] of rows)
      await raw.xadd(key, id, ...fields.map((text) => (text[0] === "[" ? "[{}]" : text)));
  };

  const cases: readonly (readonly [what: string, damage: () => Promise<unknown>, named: RegExp])[] = [
    ["the head", () => damage("head:a-1"), /head of agent a-1/],
    ["the account of the turn", () => damage("account:turn:a-1#1"), /account turn:a-1#1/],
    ["the account of the agent", () => damage("account:agent:a-1"), /account agent:a-1/],
    ["the record", () => damage("agent:a-1"), /record of agent a-1/],
    ["the journal", damageJournal, /journal/],
    ["the messages", damageMessages, /message/],
  ];
  it.each(cases)("%s: the client's waits and streams fail with the error", async (_what, spoil, named) => {
    const agent = await client.agent("clerk", { agentId: "a-1", budget: { maxSteps: 50 } });
    await agent.start();
    const turn = agent.executeTurn("pay");
    const { requestId } = await openRequestOf(turn);
    const told = toldOf(client, turn, "a-1");
    await worker.shutdown();
    await spoil();
    worker = await open("worker");
    await client.decide(requestId, { verdict: "approved", by: "ann" }).catch(() => undefined);
    const error = { code: "corrupt_record", message: expect.stringMatching(named) };
    for (const one of await Promise.all(told)) expect(one).toMatchObject(error);
    const damaged = [{ agentId: "a-1", message: expect.stringMatching(named), since: expect.any(Number) }];
    expect(await client.health()).toMatchObject({ isHealthy: true, damaged });
    expect(warned).toHaveBeenCalledWith(expect.stringMatching(/^agent a-1 cannot continue: /), {
      code: "TROUPE_CORRUPT_RECORD",
    });
    const other = await client.agent("clerk", { agentId: "b-1" });
    await other.start();
    expect(await openRequestOf(other.executeTurn("pay"))).toMatchObject({ agentId: "b-1" });
  });

  it("an account of a subagent: waits for its parent's turn fail with the error", async () => {
    const agent = await client.agent("lead", { agentId: "a-1" });
    await agent.start();
    const turn = agent.executeTurn("have it paid");
    const { requestId, agentId } = await openRequestOf(turn);
    const told = toldOf(client, turn, "a-1");
    await damage(`account:turn:${agentId}#1`);
    await replaceWorker();
    await client.decide(requestId, { verdict: "approved", by: "ann" });
    for (const one of await Promise.all(told)) {
      expect(one).toMatchObject({ code: "corrupt_record", message: expect.stringContaining(`turn:${agentId}#1`) });
    }
    expect((await client.health()).damaged).toMatchObject([{ agentId }]);
  });

  it("the turn continues by itself once the record is repaired, and health() no longer reports it", async () => {
    const agent = await client.agent("clerk", { agentId: "a-1" });
    await agent.start();
    const turn = agent.executeTurn("pay");
    const { requestId } = await openRequestOf(turn);
    const told = toldOf(client, turn, "a-1");
    const mend = await damage("account:turn:a-1#1");
    await replaceWorker();
    await client.decide(requestId, { verdict: "approved", by: "ann" });
    await Promise.all(told);
    await vi.waitFor(async () => expect((await worker.health()).damaged).toMatchObject([{ agentId: "a-1" }]), 30_000);
    await mend();
    expect(await agent.turn("a-1#1").result).toMatchObject({ status: "completed", text: "done" });
    for (const runtime of [client, worker]) {
      await vi.waitFor(async () => expect((await runtime.health()).damaged).toEqual([]), 30_000);
    }
  }, 120_000);
});

describe("a damaged record that two processes read, in a file", () => {
  let folder: string;
  let file: string;
  let owner: Runtime;
  let other: Runtime;
  let gate: ReturnType<typeof createGate<string>>;
  const warned = vi.spyOn(process, "emitWarning");

  beforeEach(async () => {
    warned.mockReset().mockReturnValue();
    folder = mkdtempSync(join(tmpdir(), "troupe-damaged-"));
    file = join(folder, "a.db");
    gate = createGate<string>();
    const open = () => {
      const model = scriptedModel((_request, { signal }) => gate.pass(signal));
      return createRuntime({ agents: [defineAgent({ name: "thinker", model })], stores: sqliteStores(file), leaseMs });
    };
    owner = await open();
    other = await open();
  });
  afterEach(async () => {
    await Promise.all([owner, other].map((runtime) => runtime.shutdown({ timeoutMs: 500 })));
    rmSync(folder, { recursive: true, force: true });
  });

  it.each([
    ["the account", "UPDATE accounts SET account = '{}'", /account/],
    ["the record", "UPDATE agents SET record = '{}'", /agent a-1/],
    ["the journal", "UPDATE journal SET entries = '{}'", /journal/],
  ])("%s: waits in both processes fail with the error", async (_what, sql, named) => {
    const agent = await owner.agent("thinker", { agentId: "a-1" });
    await agent.start();
    const here = agent.executeTurn("think");
    await gate.reached();
    const there = (await other.find("a-1")).turn("a-1#1");
    const told = [...toldOf(owner, here, "a-1"), ...toldOf(other, there, "a-1")];
    const database = new DatabaseSync(file);
    database.exec(sql);
    database.close();
    if (!String(named).includes("journal")) gate.open("thought");
    const error = { code: "corrupt_record", message: expect.stringMatching(named) };
    for (const one of await Promise.all(told)) expect(one).toMatchObject(error);
    for (const runtime of [owner, other]) {
      expect((await runtime.health()).damaged).toMatchObject([{ agentId: "a-1" }]);
    }
  });
});

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { createRuntime, defineAgent, defineTool, type Runtime, type RuntimeOptions } from "../../src/index.ts";
import { bullmqQueues } from "../../src/queues/bullmq.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";
import { calling, createGate } from "../support/turn-probes.ts";

/** A third of it passes between two signs of life. */
const leaseMs = 900;

async function followed(runtime: Runtime, rootAgentId: string): Promise<void> {
  const types = new Set<string>();
  for await (const { type } of runtime.follow(rootAgentId)) types.add(type);
}

describe.skipIf(!redisProgram)("a Redis that is emptied while a turn is open", () => {
  let server: RedisServer;
  let prefix: string;
  let opened: Runtime[];
  let gate: ReturnType<typeof createGate<string>>;
  const warned = vi.spyOn(process, "emitWarning");
  beforeAll(async () => {
    server = await RedisServer.start({ isLogged: false });
  });
  afterAll(() => server.stop());
  beforeEach(() => {
    warned.mockReset().mockReturnValue();
    prefix = ownPrefix();
    opened = [];
    gate = createGate<string>();
  });
  afterEach(async () => {
    await Promise.all(opened.map((runtime) => runtime.shutdown()));
  });

  const agents = () => {
    const pay = defineTool({
      name: "pay",
      description: "Pays.",
      parameters: z.object({}),
      needsApproval: true,
      execute: () => "paid",
    });
    const asking = scriptedModel(({ messages }) => (messages.at(-1)?.role === "tool" ? "done" : calling("pay")));
    const slow = scriptedModel((_request, { index, signal }) => (index === 0 ? gate.pass(signal) : "done"));
    return [defineAgent({ name: "asker", model: asking, tools: [pay] }), defineAgent({ name: "thinker", model: slow })];
  };
  const open = async (options: Partial<RuntimeOptions> = {}): Promise<Runtime> => {
    const runtime = await createRuntime({
      agents: agents(),
      stores: storesOn(server, { prefix }),
      leaseMs,
      ...options,
    });
    opened.push(runtime);
    return runtime;
  };
  const empty = async (): Promise<void> => {
    const client = server.client();
    await client.flushall();
    client.disconnect();
  };

  it("is told to callers that wait in one process, for a person or for a model, and new turns work", async () => {
    const runtime = await open();
    const ends: Promise<unknown>[] = [];
    for (const name of ["asker", "thinker"]) {
      const agent = await runtime.agent(name, { agentId: `${name}-1` });
      await agent.start();
      const turn = agent.executeTurn("go");
      ends.push(turn.result.catch((error: unknown) => error));
      ends.push(followed(runtime, agent.agentId).catch((error: unknown) => error));
      if (name === "asker") await turn.settled;
    }
    await gate.reached();
    await empty();
    for (const error of await Promise.all(ends)) expect(error).toMatchObject({ code: "store_rolled_back" });
    expect(warned).toHaveBeenCalledWith(expect.stringMatching(/Redis has lost acknowledged writes/), {
      code: "TROUPE_REDIS_ROLLED_BACK",
    });
    gate.open("too late");
    for (const agentId of ["asker-1", "asker-2"]) {
      expect(await paid(runtime, agentId)).toMatchObject({ status: "completed", text: "done" });
    }
  });

  it("is told where the next commit of the turn finds it", async () => {
    const runtime = await open({ leaseMs: 60_000 });
    const agent = await runtime.agent("thinker", { agentId: "thinker-1" });
    await agent.start();
    const lost = agent.executeTurn("go").result.catch((error: unknown) => error);
    await gate.reached();
    await empty();
    gate.open("an answer that cannot be stored");
    expect(await lost).toMatchObject({ code: "store_rolled_back" });
  });

  it("is told to a client whose workers run the turn, and new turns work", async () => {
    const place = { url: server.url, prefix: `${prefix}q:` };
    await open({ role: "worker", queues: bullmqQueues(place) });
    const client = await open({ role: "client", queues: bullmqQueues(place) });
    const agent = await client.agent("asker", { agentId: "asker-1" });
    await agent.start();
    const turn = agent.executeTurn("pay");
    const lost = turn.result.catch((error: unknown) => error);
    await turn.settled;
    await empty();
    expect(await lost).toMatchObject({ code: "store_rolled_back" });
    for (const agentId of ["asker-1", "asker-2"]) {
      expect(await paid(client, agentId)).toMatchObject({ status: "completed", text: "done" });
    }
  }, 30_000);
});

/** Asks for a turn that waits for a person, approves it, and returns its result. */
async function paid(runtime: Runtime, agentId: string) {
  const agent = await runtime.agent("asker", { agentId });
  await agent.start();
  const turn = agent.executeTurn("pay");
  const rest = await turn.settled;
  const [request] = "requests" in rest ? rest.requests : [];
  await runtime.decide(request?.requestId ?? "", { verdict: "approved", by: "ann" });
  return await turn.result;
}

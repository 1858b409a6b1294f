import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { createRuntime, defineAgent, defineTool, type Runtime, type RuntimeOptions } from "../../src/index.ts";
import { deferredTools, piiGuard } from "../../src/kit/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { ownQueuePrefix, queuesOn } from "../support/bullmq-queues.ts";
import { toolTextsOf } from "../support/journal-probes.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";
import { calling } from "../support/turn-probes.ts";

const resolveAuth: RuntimeOptions["resolveAuth"] = ({ actorId }) => ({ actorId, credentials: { token: "fresh" } });

async function played([owner, other]: readonly Runtime[]): Promise<readonly string[]> {
  try {
    if (!owner) throw new Error("expected at least one process");
    const agent = await owner.agent("worker", { agentId: "worker-1" });
    await agent.start();
    const auth = { actorId: "ada", credentials: { token: "token-of-ada" } };
    expect(await agent.executeTurn("go", { auth }).result).toMatchObject({ status: "completed", text: "the end" });
    return await toolTextsOf(agent);
  } finally {
    await owner?.shutdown();
    await other?.shutdown();
  }
}

describe.runIf(redisProgram)("queued tools on Redis and BullMQ", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await RedisServer.start();
  });
  afterAll(() => server.stop());

  interface Process extends Partial<Pick<RuntimeOptions, "work" | "resolveAuth">> {
    readonly name: string;
  }

  /** Opens processes on one Redis whose tool returns the name of its process. Those without `work` run queued calls. */
  async function processes(given: readonly Process[], auth?: "required"): Promise<Runtime[]> {
    const prefix = ownPrefix();
    const queuePrefix = ownQueuePrefix();
    const opened = given.map(async ({ name, ...options }) => {
      const browse = defineTool({
        name: "browse",
        description: "Browses.",
        parameters: z.object({}),
        queue: "browser",
        effect: "none",
        maxAttempts: 2,
        ...(auth ? { auth } : {}),
        execute: (_args, run) => {
          if (run.attempt === 1 && !auth) throw new Error("the first never works");
          return `${name} for ${run.actorId ?? "nobody"} with ${String(run.auth?.credentials !== undefined)}`;
        },
      });
      const model = scriptedModel(({ messages }) => (messages.at(-1)?.role === "tool" ? "the end" : calling("browse")));
      return await createRuntime({
        agents: [defineAgent({ name: "worker", model, tools: [browse] })],
        stores: storesOn(server, { prefix }),
        queues: queuesOn(server, { prefix: queuePrefix }),
        ...options,
      });
    });
    return await Promise.all(opened);
  }

  it("another process runs the call and its second attempt", async () => {
    const runtimes = await processes([{ name: "owner", work: { queues: {} } }, { name: "other" }]);
    expect(await played(runtimes)).toEqual(["other for ada with false"]);
  });

  it("guards hold in the worker of another process, also for deferred tools", async () => {
    const prefix = ownPrefix();
    const queuePrefix = ownQueuePrefix();
    const open = async (name: string, work?: RuntimeOptions["work"]) => {
      const browse = defineTool({
        name: "browse",
        description: "Browses.",
        parameters: z.object({ url: z.string() }),
        queue: "browser",
        effect: "none",
        execute: ({ url }, run) => `${name} at ${url} for ${run.prompt}: mail to ada@own.example`,
      });
      const through = { name: "call_tool", arguments: { name: "browse", arguments: { url: "x?ben@own.example" } } };
      const model = scriptedModel(({ messages }) =>
        messages.at(-1)?.role === "tool" ? "the end" : { toolCalls: [through] },
      );
      return await createRuntime({
        agents: [defineAgent({ name: "worker", model, tools: deferredTools([browse]), plugins: [piiGuard()] })],
        stores: storesOn(server, { prefix }),
        queues: queuesOn(server, { prefix: queuePrefix, lockMs: 30_000 }),
        ...(work ? { work } : {}),
      });
    };
    const runtimes = [await open("owner", { queues: {} }), await open("other")];
    expect(await played(runtimes)).toEqual(["other at x?[email] for go: mail to [email]"]);
  });

  it("a queue has no job of an ended call, although agents that wake add their jobs again", async () => {
    const visit = defineTool({
      name: "visit",
      description: "Visits.",
      parameters: z.object({}),
      queue: "browser",
      effect: "none",
      execute: () => "seen",
    });
    const model = scriptedModel(({ messages }) =>
      messages.at(-1)?.role === "tool" ? "the end" : calling("visit", "visit", "visit"),
    );
    const agents = [defineAgent({ name: "worker", model, tools: [visit] })];
    const [prefix, queuePrefix] = [ownPrefix(), ownQueuePrefix()];
    const open = async (options: Pick<RuntimeOptions, "role" | "work">): Promise<Runtime> => {
      const queues = queuesOn(server, { prefix: queuePrefix });
      return await createRuntime({ agents, stores: storesOn(server, { prefix }), queues, ...options });
    };
    // At most these three calls start, so a job that was added again would still be waiting at the end.
    const queues = { browser: { rateLimit: { max: 3, perMs: 3_600_000 } } };
    const workers = [
      await open({ role: "worker", work: { queues } }),
      await open({ role: "worker", work: { queues } }),
    ];
    const client = await open({ role: "client" });
    try {
      const agent = await client.agent("worker", { agentId: "worker-1" });
      await agent.start();
      expect(await agent.executeTurn("go").result).toMatchObject({ status: "completed" });
      for (const worker of workers) await worker.shutdown();
      expect(await client.queues.counts(["browser"])).toMatchObject([{ waiting: 0, active: 0, delayed: 0, dead: 0 }]);
    } finally {
      for (const runtime of [...workers, client]) await runtime.shutdown();
    }
  });

  it("credentials are not sent with the job: the worker resolves its own, or the tool is not run", async () => {
    const owner = { name: "owner", work: { queues: {} } };
    const none = await processes([owner, { name: "other" }], "required");
    expect((await played(none))[0]).toMatch(
      /was not run: it needs credentials, and the worker of its queue "browser" has none/,
    );
    const both = await processes([owner, { name: "other", resolveAuth }], "required");
    expect(await played(both)).toEqual(["other for ada with true"]);
  });
});

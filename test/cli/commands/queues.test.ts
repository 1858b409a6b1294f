// `troupe queues`: waiting jobs, workers, and dead letters with their causes.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createRuntime, defineAgent } from "../../../src/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { InvalidInputError } from "../../../src/errors/index.ts";
import { bullmqQueues } from "../../../src/queues/bullmq.ts";
import type { Queues } from "../../../src/queues/index.ts";
import { RedisServer, redisProgram } from "../../support/redis-server.ts";
import { queuesOn } from "../../support/bullmq-queues.ts";
import { ownPrefix, storesOn } from "../../support/redis-stores.ts";
import { createGate } from "../../support/turn-probes.ts";
import { troupe } from "../support/in-process.ts";

const job = { tenant: "default", agentId: "till", callId: "till#1:1:0", attempt: 1, isRepeatable: true };

describe.skipIf(!redisProgram)("the queues of a Redis", () => {
  let server: RedisServer;
  let open: Queues[] = [];
  beforeAll(async () => {
    server = await RedisServer.start();
  });
  afterAll(() => server.stop());
  afterEach(async () => {
    await Promise.all(open.map((queues) => queues.close()));
    open = [];
  });

  /** A prefix of its own, with the actions of other processes and the output of the command. */
  function place() {
    const prefix = ownPrefix();
    const queues = bullmqQueues({ url: server.url, prefix: `${prefix}queue:` });
    open.push(queues);
    return {
      prefix,
      queues,
      told: (...words: readonly string[]) => troupe(["queues", "--redis", server.url, "--prefix", prefix, ...words]),
    };
  }

  test("are empty if no process has used any", async () => {
    const { told } = place();
    const { code, out } = await told();
    expect(code).toBe(0);
    expect(out).toEqual([
      expect.stringMatching(/^There are no queues in redis:\/\/127\.0\.0\.1:\d+ \(prefix test-.*\)\.$/),
    ]);
  });

  test("contain waiting jobs, dead letters, and the cause", async () => {
    const { queues, told } = place();
    const given = Promise.withResolvers<void>();
    await queues.work({
      tools: {
        queues: { browser: {} },
        run: () => Promise.reject(new InvalidInputError("the page has no address")),
      },
      onDead: async () => given.resolve(),
    });
    await queues.wake({ tenant: "default", agentId: "till" });
    await queues.add("browser", job);
    await given.promise;
    await expect.poll(async () => (await queues.counts(["browser"]))[0]?.dead).toBe(1);
    const { code, out, notes } = await told();
    expect({ code, notes }).toEqual({ code: 0, notes: [] });
    expect(out.slice(0, 5)).toEqual([
      "QUEUE          WAITING  RUNNING  DELAYED  DEAD  WORKERS",
      "browser              0        0        0     1        1",
      "wake (agents)        1        0        0     0        0",
      "",
      "Dead letters:",
    ]);
    expect(out[6]).toMatch(
      /^\d{4}-\d\d-\d\d \d\d:\d\d  browser  call till#1:1:0  failed +0  .*the page has no address/,
    );
    const lines = (await told("--json")).out.map((line) => JSON.parse(line) as object);
    expect(lines).toMatchObject([
      { queue: "browser", dead: 1, workers: 1, deadLetters: [{ job, cause: { code: "failed", deaths: 0 } }] },
      { queue: "wake", waiting: 1, deadLetters: [] },
    ]);
  });

  test("contain no needless jobs once the workers have left", async () => {
    const { prefix, queues, told } = place();
    const gate = createGate<string>();
    const agents = [defineAgent({ name: "till", model: scriptedModel((_request, { signal }) => gate.pass(signal)) })];
    const part = (role: "worker" | "client") =>
      createRuntime({
        agents,
        role,
        stores: storesOn(server, { prefix }),
        queues: queuesOn(server, { prefix: `${prefix}queue:` }),
      });
    const [worker, client] = [await part("worker"), await part("client")];
    const agent = await client.agent("till", { agentId: "till" });
    await agent.start();
    const turn = agent.executeTurn("go");
    await gate.reached();
    // As by a process that does not know the agent's holder. The wake waits until the running one has ended.
    await queues.wake({ tenant: "default", agentId: "till" });
    gate.open("done");
    await turn.result;
    await worker.shutdown();
    await client.shutdown();
    const { out } = await told();
    expect(out).toEqual([
      "QUEUE          WAITING  RUNNING  DELAYED  DEAD  WORKERS",
      "wake (agents)        0        0        0     0        0",
    ]);
  });
});

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createRuntime, defineAgent, type Queues, type Runtime } from "../../src/index.ts";
import { bullmqQueues } from "../../src/queues/bullmq.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { first, rows } from "../support/full.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";
import { createGate } from "../support/turn-probes.ts";

describe.skipIf(!redisProgram)("leaving while Redis is away", () => {
  let server: RedisServer;
  let runtime: Runtime;
  let gate: ReturnType<typeof createGate<string>>;
  let lost: Promise<unknown>;
  let warned: string[];
  const emit = vi.spyOn(process, "emitWarning");

  beforeEach(async () => {
    warned = [];
    emit.mockReset().mockImplementation((message, options) => {
      if (typeof options === "object" && "code" in options) warned.push(`${options.code}: ${String(message)}`);
    });
    server = await RedisServer.start({ isLogged: false });
    gate = createGate<string>();
  });
  afterEach(() => server.stop());

  /** Starts a turn, and stops Redis during its model call. */
  const setUp = async (queues?: Queues): Promise<void> => {
    const model = scriptedModel((_request, { signal }) => gate.pass(signal));
    runtime = await createRuntime({
      agents: [defineAgent({ name: "thinker", model })],
      stores: storesOn(server, { prefix: ownPrefix() }),
      ...(queues ? { queues } : {}),
    });
    const agent = await runtime.agent("thinker", { agentId: "thinker-1" });
    await agent.start();
    lost = agent.executeTurn("go").result.catch((error: unknown) => error);
    await gate.reached();
    await server.kill();
  };
  const queued = (): Queues => bullmqQueues({ url: server.url, prefix: ownPrefix() });
  const ways = rows<readonly [string, () => Queues | undefined]>(
    [
      ["no queues", () => undefined],
      ["BullMQ", queued],
    ],
    first,
  );

  it.each(ways)(
    "shutdown() respects its timeout and names the turns left behind (%s)",
    async (_name, open) => {
      await setUp(open());
      gate.open("an answer that cannot be stored");
      const { ms } = await timed(runtime.shutdown({ timeoutMs: 2_000 }));
      expect(ms).toBeLessThan(3_500);
      expect(await lost).toMatchObject({ code: "turn_interrupted" });
      expect(warned.at(-1)).toMatch(
        /^TROUPE_LEFT_BEHIND: this runtime has left agents behind: thinker-1#1: it could not be/,
      );
    },
    30_000,
  );

  it.each(ways)(
    "drain() respects its timeout and returns the agents and turns left behind (%s)",
    async (_name, open) => {
      await setUp(open());
      const { value, ms } = await timed(runtime.drain({ timeoutMs: 3_000 }));
      expect(ms).toBeLessThan(4_500);
      expect(value).toMatchObject({ left: 1, leftBehind: [{ agentId: "thinker-1", turnId: "thinker-1#1" }] });
      expect(value.leftBehind[0]?.reason).toMatch(/could not be released/);
      expect(await lost).toMatchObject({ code: "turn_interrupted" });
    },
    30_000,
  );

  it("shutdown() with an invalid timeout is refused and closes nothing", async () => {
    await setUp();
    await server.launch();
    await expect(runtime.shutdown({ timeoutMs: -1 })).rejects.toMatchObject({ code: "invalid_input" });
    expect(await runtime.list()).toHaveLength(0);
    await runtime.shutdown({ timeoutMs: 100 });
  });
});

async function timed<T>(work: Promise<T>): Promise<{ readonly value: T; readonly ms: number }> {
  const from = performance.now();
  return { value: await work, ms: performance.now() - from };
}

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createRuntime, defineAgent, type Runtime } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";

describe.skipIf(!redisProgram)("a damaged process row in Redis", () => {
  let server: RedisServer;
  let opened: Runtime[];
  const warned = vi.spyOn(process, "emitWarning");
  beforeEach(async () => {
    warned.mockReset().mockReturnValue();
    server = await RedisServer.start({ isLogged: false });
    opened = [];
  });
  afterEach(async () => {
    await Promise.all(opened.map((runtime) => runtime.shutdown({ timeoutMs: 500 })));
    await server.stop();
  });

  it("does not keep another process from starting and running the agents", async () => {
    const prefix = ownPrefix();
    const open = async (): Promise<Runtime> => {
      const clerk = defineAgent({ name: "clerk", model: scriptedModel(() => "noted") });
      const runtime = await createRuntime({ agents: [clerk], stores: storesOn(server, { prefix }), leaseMs: 900 });
      opened.push(runtime);
      return runtime;
    };
    const first = await open();
    const agent = await first.agent("clerk", { agentId: "a-1" });
    await agent.start();
    await agent.executeTurn("hello").result;
    await first.shutdown();
    const raw = server.client();
    const key = `${prefix}{processes}:rows`;
    const rows = Object.entries(await raw.hgetall(key)).filter(([field]) => field.startsWith("process:"));
    expect(rows.length).toBeGreaterThan(0);
    for (const [field, text] of rows) await raw.hset(key, field, text.replace(/\|[^]*/, "|{}"));
    raw.disconnect();
    const second = await open();
    const again = await second.find("a-1");
    await again.start();
    expect(await again.executeTurn("hello").result).toMatchObject({ status: "completed", text: "noted" });
    expect(warned).toHaveBeenCalledWith(expect.stringMatching(/^process .* does not fit its schema/), {
      code: "TROUPE_CORRUPT_RECORD",
    });
  });
});

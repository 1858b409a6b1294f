import type { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { createRuntime, type Runtime } from "../../src/index.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";
import { expectOtherWorks, openTwoClerks, payingClerk } from "../support/two-clerks.ts";

/** Fields of the tree's rows, and the name in the error. */
const rows: readonly (readonly [field: string, named: RegExp])[] = [
  ["agent:a-1", /record of agent a-1/],
  ["head:a-1", /head of agent a-1/],
  ["account:turn:a-1#1", /account turn:a-1#1/],
  ["account:agent:a-1", /account agent:a-1/],
  ["request:", /request a-1#1/],
];

describe.skipIf(!redisProgram)("a damaged row of one of two agents, in Redis", () => {
  let server: RedisServer;
  let client: Redis;
  let prefix: string;
  let runtime: Runtime;
  let requestId: string;
  const warned = vi.spyOn(process, "emitWarning");
  beforeAll(async () => {
    server = await RedisServer.start();
    client = server.client();
  });
  afterAll(async () => {
    client.disconnect();
    await server.stop();
  });
  beforeEach(async () => {
    warned.mockReset().mockReturnValue();
    prefix = ownPrefix();
    const first = await createRuntime({ agents: [payingClerk()], stores: storesOn(server, { prefix }) });
    ({ requestId } = await openTwoClerks(first));
    await first.shutdown();
    runtime = await createRuntime({ agents: [payingClerk()], stores: storesOn(server, { prefix }) });
  });
  afterEach(() => runtime.shutdown({ timeoutMs: 1_000 }));

  /** The error that a caller gets when it continues the turn. */
  const refusal = async (): Promise<unknown> => {
    try {
      const agent = await runtime.find("a-1");
      await agent.start();
      const end = agent.turn("a-1#1").result;
      end.catch(() => undefined);
      await runtime.decide(requestId, { verdict: "approved", by: "ann" });
      return await end;
    } catch (error) {
      return error;
    }
  };

  it.each(rows)("%s: the waiting caller gets the error, and the other agent works", async (field, named) => {
    const key = `${prefix}{default/a-1}:rows`;
    const names = await client.hkeys(key);
    // There is one request, whose field also holds its id.
    const name = names.find((one) => one === field || (field === "request:" && one.startsWith(field))) ?? "none";
    const text = await client.hget(key, name);
    expect(text, names.join()).not.toBeNull();
    const broken = (text ?? "").replace(/\|[^]*/, "|{}");
    await client.hset(key, name, broken);
    expect(await refusal()).toMatchObject({ code: "corrupt_record", message: expect.stringMatching(named) });
    await expectOtherWorks(runtime);
    expect(await client.hget(key, name)).toBe(broken);
  });
});

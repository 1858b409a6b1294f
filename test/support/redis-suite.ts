import type { Redis } from "ioredis";
import { afterAll, beforeAll } from "vitest";
import { RedisServer, type RedisServerOptions } from "./redis-server.ts";

/** A Redis that the tests of one suite share. */
export class SuiteRedis {
  #server: RedisServer | undefined;
  #client: Redis | undefined;

  get server(): RedisServer {
    if (!this.#server) throw new Error("the server of a suite is available from its first test on");
    return this.#server;
  }

  /** For reading and tampering. */
  get client(): Redis {
    this.#client ??= this.server.client();
    return this.#client;
  }

  async start(options: RedisServerOptions): Promise<void> {
    this.#server = await RedisServer.start(options);
  }

  async stop(): Promise<void> {
    this.#client?.disconnect();
    await this.#server?.stop();
  }
}

/** Within a `describe`: a server that starts before its tests and stops after them. */
export function redisOfSuite(options: RedisServerOptions = {}): SuiteRedis {
  const redis = new SuiteRedis();
  beforeAll(() => redis.start(options));
  afterAll(() => redis.stop());
  return redis;
}

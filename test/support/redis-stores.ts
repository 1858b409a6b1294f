import { randomUUID } from "node:crypto";
import { redisStores } from "../../src/stores/redis.ts";
import type { RedisStoresOptions } from "../../src/stores/redis.ts";
import type { Stores } from "../../src/stores/index.ts";
import type { RedisCluster } from "./redis-cluster.ts";
import type { RedisServer } from "./redis-server.ts";

/** A prefix that nobody else has: an empty place on a server that others use too. */
export function ownPrefix(): string {
  return `test-${randomUUID()}:`;
}

export function storesOn(server: RedisServer | RedisCluster, options: RedisStoresOptions = {}): Stores {
  const where = "url" in server ? { url: server.url } : { cluster: { nodes: server.nodes } };
  return redisStores({ prefix: ownPrefix(), ...where, ...options });
}

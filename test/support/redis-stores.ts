import { randomUUID } from "node:crypto";
import type { Stores } from "../../src/stores/index.ts";
import type { RedisStoresOptions } from "../../src/stores/redis.ts";
import { redisStores } from "../../src/stores/redis.ts";
import type { RedisCluster } from "./redis-cluster.ts";
import type { RedisServer } from "./redis-server.ts";

/** A unique prefix: an empty keyspace on a server that other tests use too. */
export function ownPrefix(): string {
  return `test-${randomUUID()}:`;
}

export function storesOn(server: RedisServer | RedisCluster, options: RedisStoresOptions = {}): Stores {
  const where = "url" in server ? { url: server.url } : { cluster: { nodes: server.nodes } };
  return redisStores({ prefix: ownPrefix(), ...where, ...options });
}

/** Two clients of one storage as one store: calls alternate between them. */
export function alternating(one: Stores, other: Stores): Stores {
  let next = one;
  const both = {
    close: async () => {
      await one.close();
      await other.close();
    },
  };
  return new Proxy(one, {
    get: (target, name) => {
      if (name === "close") return both.close;
      const client = next;
      next = next === one ? other : one;
      return Reflect.get(name === "kind" ? target : client, name);
    },
  });
}

/**
 * Adds the first listener to the stores. Resolves once they receive writes of other processes; earlier writes are only
 * reported as "any". `heard` resolves at the first write that names a wanted tree.
 */
export async function listening(
  stores: Stores,
  isWanted: (rootAgentId: string) => boolean = () => true,
): Promise<{ readonly heard: Promise<void>; readonly end: () => void }> {
  const subscribed = Promise.withResolvers<void>();
  const heard = Promise.withResolvers<void>();
  const end = stores.onForeignWrite((writes) => {
    if (writes === "any") subscribed.resolve();
    else if (writes.all.some(({ rootAgentId }) => isWanted(rootAgentId))) heard.resolve();
  });
  await subscribed.promise;
  return { heard: heard.promise, end };
}

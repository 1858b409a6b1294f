import { randomUUID } from "node:crypto";
import { type BullmqQueuesOptions, bullmqQueues } from "../../src/queues/bullmq.ts";
import type { Queues } from "../../src/queues/index.ts";
import type { QueuesSubject } from "../contracts/queues-fixtures.ts";
import { PostgresServer } from "./postgres-server.ts";
import type { RedisCluster } from "./redis-cluster.ts";
import type { RedisServer } from "./redis-server.ts";

/** Short timeouts, for tests that wait for the detection of a dead worker. */
export const SHORT = { lockMs: 1_000, deathCheckMs: 250, cancelCheckMs: 50, graceMs: 200 } as const;

export type QueuesServer = RedisServer | RedisCluster | PostgresServer;

/** A unique prefix: empty queues on a server that other tests use too. */
export function ownQueuePrefix(): string {
  return `test-${randomUUID()}.`;
}

/** The options that name a server. */
export function locationOf(server: QueuesServer): BullmqQueuesOptions {
  if (server instanceof PostgresServer) return { postgres: { url: server.url } };
  return "url" in server ? { url: server.url } : { cluster: { nodes: server.nodes } };
}

export function queuesOn(server: QueuesServer, options: Partial<BullmqQueuesOptions> = {}): Queues {
  return bullmqQueues({ prefix: ownQueuePrefix(), ...SHORT, ...locationOf(server), ...options });
}

export function subjectOn(server: QueuesServer): QueuesSubject {
  const prefix = ownQueuePrefix();
  return {
    graceMs: SHORT.graceMs,
    client: () => queuesOn(server, { prefix }),
    soon: (promise) => promise,
    now: () => performance.now(),
  };
}

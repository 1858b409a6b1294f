import { setTimeout as delay } from "node:timers/promises";
import type { Redis } from "ioredis";
import { RedisServer } from "./redis-server.ts";

const SLOTS = 16_384;
const NODES = 3;
const READY_MS = 30_000;

/** Three Redis servers that form one cluster, each with a third of the slots and no replica. */
export class RedisCluster {
  readonly servers: readonly RedisServer[];

  private constructor(servers: readonly RedisServer[]) {
    this.servers = servers;
  }

  static async start(): Promise<RedisCluster> {
    const settings = ["--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"];
    const servers = await Promise.all(Array.from({ length: NODES }, () => RedisServer.start({ settings })));
    const clients = servers.map((server) => server.client());
    try {
      await join(clients, servers);
    } finally {
      for (const client of clients) client.disconnect();
    }
    return new RedisCluster(servers);
  }

  get nodes(): { host: string; port: number }[] {
    return this.servers.map(({ port }) => ({ host: "127.0.0.1", port }));
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.stop()));
  }
}

async function join(clients: readonly Redis[], servers: readonly RedisServer[]): Promise<void> {
  const share = Math.ceil(SLOTS / clients.length);
  for (const [index, client] of clients.entries()) {
    const first = index * share;
    const slots = Array.from({ length: Math.min(share, SLOTS - first) }, (_, offset) => first + offset);
    await client.cluster("ADDSLOTS", ...slots);
    await client.cluster("SET-CONFIG-EPOCH", index + 1);
  }
  for (const { port } of servers.slice(1)) await clients[0]?.cluster("MEET", "127.0.0.1", port);
  const end = performance.now() + READY_MS;
  for (const client of clients) {
    while (!isWhole(await client.cluster("INFO"), servers.length)) {
      if (performance.now() > end) throw new Error(`the cluster was not complete within ${READY_MS} ms`);
      await delay(20);
    }
  }
}

function isWhole(info: unknown, nodes: number): boolean {
  return String(info).includes("cluster_state:ok") && String(info).includes(`cluster_known_nodes:${nodes}`);
}

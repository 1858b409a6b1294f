import { setTimeout as delay } from "node:timers/promises";
import { withRedis } from "../ground.ts";
import type { ChaosOptions } from "../scenario.ts";
import { seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { redisPlace } from "../stores-at.ts";
import { withServers } from "../faults/f2.ts";
import type { Stage } from "../faults/f2-round.ts";
import { WorkerPool } from "../workers/pool.ts";
import type { NodeOrders, SurfaceName } from "./node.ts";

const KILLS = 100;
const SHORT_KILLS = 5;
const CLIENTS = 64;
const SHORT_CLIENTS = 16;
const NODES = 3;
export const LEASE_MS = 2_000;
const KEEP_ALIVE_MS = 2_000;
const DRAIN_MS = 10_000;
/** Time between two kills while all nodes are up, in milliseconds. */
const SHORTEST_GAP_MS = 500;
const LONGEST_GAP_MS = 3_000;

/** Counters of the clients of all wires. */
export interface Counts {
  /** Number of opened streams, and how many of them broke. */
  streams: number;
  cut: number;
  /** Number of requests repeated because there was no answer or a retryable one. */
  again: number;
}

/** A client that requests turns until the scenario is over. */
export interface NodeClient {
  /** Number of requested turns. */
  readonly asked: number;
  readonly faults: readonly string[];
  run(isOver: () => boolean): Promise<void>;
}

/** Finds nodes for clients. */
export interface ClientPlace {
  readonly number: number;
  /** The address of the next node, which may be dead. */
  readonly nextNode: () => string;
}

export interface Scene<Client extends NodeClient> {
  readonly surface: SurfaceName;
  readonly counts: Counts;
  readonly clientOf: (place: ClientPlace) => Client;
}

/** The stored data after all nodes have exited. */
export interface Played<Client extends NodeClient> {
  readonly clients: readonly Client[];
  readonly pool: WorkerPool;
  readonly servers: Pick<Stage, "ledger" | "model">;
  /** Location of the stores. */
  readonly place: string;
}

/** Runs clients against nodes that are killed, until the last kill or the first fault, and audits the stored data. */
export async function underKills<Client extends NodeClient, Found>(
  options: ChaosOptions,
  scene: Scene<Client>,
  audit: (played: Played<Client>) => Promise<Found>,
): Promise<Found> {
  return await withServers(options.folder, (servers) =>
    withRedis({}, async ({ url }) => audit(await play(options, scene, { servers, url }))),
  );
}

async function play<Client extends NodeClient>(
  { seed, short, rounds, progress }: ChaosOptions,
  { surface, counts, clientOf }: Scene<Client>,
  { servers, url }: Pick<Played<Client>, "servers"> & { readonly url: string },
): Promise<Played<Client>> {
  const kills = rounds ?? (short ? SHORT_KILLS : KILLS);
  const clientCount = short ? SHORT_CLIENTS : CLIENTS;
  const random = seededRandom(seed);
  const place = redisPlace(url, "serve:");
  const nodes = new Map<number, string>();
  const orders: NodeOrders = {
    surface,
    store: place,
    redis: url,
    ledger: servers.ledger.address,
    model: servers.model.address,
    leaseMs: LEASE_MS,
    clients: clientCount,
    keepAliveMs: KEEP_ALIVE_MS,
    drainMs: DRAIN_MS,
  };
  const pool = new WorkerPool({
    program: "serving/node.ts",
    ordersOf: () => orders,
    takenBy: async () => [],
    onUp: ({ pid, url: address = "" }) => {
      // A dead node's address stays in use until its replacement is up, because clients do not know which nodes are alive.
      for (const kill of pool.kills) nodes.delete(kill.pid);
      nodes.set(pid, address);
    },
  });
  await pool.start(NODES);
  let asked = 0;
  const nextNode = (): string => {
    asked += 1;
    return [...nodes.values()][asked % nodes.size] ?? "";
  };
  const clients = Array.from({ length: clientCount }, (_, number) => clientOf({ number, nextNode }));
  // A kill that cuts no stream proves nothing, so keep killing until one does. After a fault nothing more is killed, so
  // that it can be investigated.
  const isOver = (): boolean =>
    (pool.kills.length >= kills && counts.cut > 0) || clients.some(({ faults }) => faults.length > 0);
  const killer = async (): Promise<void> => {
    while (!isOver()) {
      await delay(random.between(SHORTEST_GAP_MS, LONGEST_GAP_MS));
      if (pool.size < NODES || !pool.kill(random)) continue;
      const deaths = pool.kills.length;
      const turns = clients.reduce((sum, client) => sum + client.asked, 0);
      if (deaths % 10 === 0) progress(`${deaths}/${kills}: ${turns} turns, ${counts.cut} streams cut`);
    }
  };
  try {
    await Promise.all([killer(), ...clients.map((client) => client.run(isOver))]);
  } finally {
    await pool.drain();
  }
  return { clients, pool, servers, place };
}

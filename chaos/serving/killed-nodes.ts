import { setTimeout as delay } from "node:timers/promises";
import { withRedis } from "../ground.ts";
import type { ChaosOptions } from "../scenario.ts";
import { seededRandom } from "../seeded-random.ts";
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
/** Between two deaths, in milliseconds, when all nodes are up. */
const SHORTEST_GAP_MS = 500;
const LONGEST_GAP_MS = 3_000;

/** What clients of all wires count. */
export interface Counts {
  /** Streams that were opened, and those that broke. */
  streams: number;
  cut: number;
  /** Requests that were sent once more since no answer came, or one that says so. */
  again: number;
}

/** A client that asks for turns until the scenario is over. */
export interface NodeClient {
  /** How many turns it has asked for. */
  readonly asked: number;
  readonly faults: readonly string[];
  run(isOver: () => boolean): Promise<void>;
}

/** Where a client finds nodes. */
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

/** What is left when all nodes have left. */
export interface Played<Client extends NodeClient> {
  readonly clients: readonly Client[];
  readonly pool: WorkerPool;
  readonly servers: Pick<Stage, "ledger" | "model">;
  /** Of the stores. */
  readonly place: string;
}

/** Has clients work with nodes that are killed under them, up to the last kill or the first fault, and then audits it. */
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
      // The address of a dead one is known until another one is up: clients do not know who lives.
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
  // A death that cuts no stream shows nothing, so kill on until one does. After a fault nothing more is killed, so that it can be
  // looked into.
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

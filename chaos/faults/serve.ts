import { setTimeout as delay } from "node:timers/promises";
import { createRuntime } from "../../src/index.ts";
import { evidenceOf } from "../evidence.ts";
import { withRedis } from "../ground.ts";
import { type ChaosOptions, type ChaosReport, type ChaosScenario, reportOf } from "../scenario.ts";
import { seededRandom } from "../seeded-random.ts";
import { clientViolations, eventsOf } from "../checks/stream-checks.ts";
import { type Counts, ServedClient } from "../serving/client.ts";
import type { NodeOrders } from "../serving/node.ts";
import { servedTeam } from "../serving/team.ts";
import { redisPlace, storesAt } from "../stores-at.ts";
import { WorkerPool } from "../workers/pool.ts";
import { queuesAt } from "../workers/queues-at.ts";
import { auditTree } from "./f1.ts";
import { withServers } from "./f2.ts";
import type { Stage } from "./f2-round.ts";

const KILLS = 100;
const SHORT_KILLS = 5;
const CLIENTS = 64;
const SHORT_CLIENTS = 16;
const NODES = 3;
const LEASE_MS = 2_000;
const KEEP_ALIVE_MS = 2_000;
const DRAIN_MS = 10_000;
/** Between two deaths, in milliseconds, when all nodes are up. */
const SHORTEST_GAP_MS = 500;
const LONGEST_GAP_MS = 3_000;

/** SIGKILL of nodes under clients that ask for turns and follow them over HTTP. A round is one death. */
export const serve: ChaosScenario = {
  name: "SERVE",
  title: "SIGKILL of nodes under clients over HTTP: no event lost or doubled, one turn for each key",
  on: ["redis"],
  run: async (options) =>
    await withServers(options.folder, (servers) => withRedis({}, ({ url }) => runServed(options, servers, url))),
};

async function runServed(
  { seed, short, rounds, progress }: ChaosOptions,
  servers: Pick<Stage, "ledger" | "model">,
  url: string,
): Promise<ChaosReport> {
  const kills = rounds ?? (short ? SHORT_KILLS : KILLS);
  const clientCount = short ? SHORT_CLIENTS : CLIENTS;
  const random = seededRandom(seed);
  const place = redisPlace(url, "serve:");
  const nodes = new Map<number, string>();
  const orders: NodeOrders = {
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
  const counts: Counts = { streams: 0, cut: 0, again: 0, replayed: 0, live: 0 };
  const clients = Array.from(
    { length: clientCount },
    (_, number) => new ServedClient({ number, random: seededRandom(seed + number), nextNode, counts }),
  );
  // With a fault there is something to look into, and nothing more is killed.
  const isOver = (): boolean => pool.kills.length >= kills || clients.some(({ faults }) => faults.length > 0);
  const killer = async (): Promise<void> => {
    while (!isOver()) {
      await delay(random.between(SHORTEST_GAP_MS, LONGEST_GAP_MS));
      if (pool.size < NODES || !pool.kill(random)) continue;
      const deaths = pool.kills.length;
      const turns = clients.reduce((sum, client) => sum + client.turns.length, 0);
      if (deaths % 10 === 0) progress(`${deaths}/${kills}: ${turns} turns, ${counts.cut} streams cut`);
    }
  };
  try {
    await Promise.all([killer(), ...clients.map((client) => client.run(isOver))]);
  } finally {
    await pool.drain();
  }
  const violations = [...pool.faults, ...(await audit({ clients, servers, place }))];
  return reportOfServed({ seed, clients, counts, pool, violations });
}

interface Outcome {
  readonly seed: number;
  readonly clients: readonly ServedClient[];
  readonly counts: Counts;
  readonly pool: WorkerPool;
  readonly violations: readonly string[];
}

function reportOfServed({ seed, clients, counts, pool, violations }: Outcome): ChaosReport {
  const turns = clients.flatMap((client) => client.turns);
  return reportOf(
    { name: serve.name, seed },
    { operations: turns.length, succeeded: turns.filter(({ end }) => end === "turn.completed").length, violations },
    {
      deaths: pool.kills.length,
      clients: clients.length,
      events: clients.reduce((sum, { seen }) => sum + seen.length, 0),
      liveEvents: counts.live,
      streams: counts.streams,
      cutStreams: counts.cut,
      askedAgain: counts.again,
      replayed: counts.replayed,
      turnStreams: turns.filter(({ seen }) => seen !== undefined).length,
      givenUp: turns.filter(({ end }) => end === "turn.stopped" || end === "turn.failed").length,
      locksLost: pool.locksLost,
    },
  );
}

interface Served {
  readonly clients: readonly ServedClient[];
  readonly servers: Pick<Stage, "ledger" | "model">;
  readonly place: string;
}

/** When all nodes are gone: what clients were told, and the world was done, against the store. */
async function audit({ clients, servers, place }: Served): Promise<string[]> {
  const trees = await evidenceOf(place);
  const reader = await createRuntime({
    agents: servedTeam(servers.ledger.address, servers.model.address),
    stores: storesAt(place),
    queues: queuesAt(place, LEASE_MS),
    role: "client",
  });
  try {
    const violations = trees.flatMap((tree) => auditTree(servers, tree));
    for (const client of clients) {
      const tree = trees.find(({ rootAgentId }) => rootAgentId === client.agentId);
      if (tree) {
        const events = await eventsOf(tree, { reader, least: client.seen.length });
        violations.push(...clientViolations(client, tree, events));
      } else violations.push(`${client.agentId}: it is gone`, ...client.faults);
    }
    if (trees.length !== clients.length) violations.push(`${clients.length} clients have ${trees.length} trees`);
    return violations;
  } finally {
    await reader.shutdown();
  }
}

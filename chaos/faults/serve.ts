import { createRuntime } from "../../src/index.ts";
import { clientViolations, eventsOf } from "../checks/stream-checks.ts";
import { evidenceOf } from "../evidence.ts";
import { type ChaosOptions, type ChaosReport, type ChaosScenario, reportOf } from "../scenario.ts";
import { seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { type ApiCounts, ServedClient } from "../serving/client.ts";
import { type ClientPlace, LEASE_MS, type Played, underKills } from "../serving/killed-nodes.ts";
import { servedTeam } from "../serving/team.ts";
import { storesAt } from "../stores-at.ts";
import { queuesAt } from "../workers/queues-at.ts";
import { auditTree } from "./f1.ts";

/** Kills nodes while clients request turns and follow them over HTTP. A round is one kill. */
export const serve: ChaosScenario = {
  name: "SERVE",
  title: "SIGKILL of nodes under clients over HTTP: no event lost or doubled, one turn for each key",
  on: ["redis"],
  run: async (options) => {
    const counts: ApiCounts = { streams: 0, cut: 0, again: 0, replayed: 0, live: 0 };
    const clientOf = (place: ClientPlace): ServedClient =>
      new ServedClient({ ...place, random: seededRandom(options.seed + place.number), counts });
    return await underKills(options, { surface: "api", counts, clientOf }, (played) => report(options, counts, played));
  },
};

async function report({ seed }: ChaosOptions, counts: ApiCounts, played: Played<ServedClient>): Promise<ChaosReport> {
  const { clients, pool } = played;
  const turns = clients.flatMap((client) => client.turns);
  const violations = [...pool.faults, ...(await audit(played))];
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

/** After all nodes have exited: compares the clients' events and the ledger with the store. */
async function audit({ clients, servers, place }: Played<ServedClient>): Promise<string[]> {
  const trees = await evidenceOf(place);
  const reader = await createRuntime({
    agents: Object.values(servedTeam(servers.ledger.address, servers.model.address)),
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

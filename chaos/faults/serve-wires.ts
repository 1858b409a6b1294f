import { wireViolations } from "../checks/wire-checks.ts";
import { evidenceOf } from "../evidence.ts";
import { type ChaosOptions, type ChaosReport, type ChaosScenario, reportOf } from "../scenario.ts";
import { seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { type ClientPlace, type Played, underKills } from "../serving/killed-nodes.ts";
import { a2aWire } from "../wires/a2a-wire.ts";
import { agUiWire } from "../wires/ag-ui-wire.ts";
import { aiSdkWire } from "../wires/ai-sdk-wire.ts";
import { openaiResponsesWire } from "../wires/openai-responses-wire.ts";
import { openaiChatWire } from "../wires/openai-chat-wire.ts";
import { tealWire } from "../wires/teal-wire.ts";
import type { Wire } from "../wires/wire.ts";
import { type WireCounts, WireUser } from "../wires/wire-user.ts";
import { auditTree } from "./f1.ts";

/** The SERVE scenario over each other wire, with its official client. */
export const serveWires: readonly ChaosScenario[] = [
  tealWire,
  a2aWire,
  agUiWire,
  aiSdkWire,
  openaiChatWire,
  openaiResponsesWire,
].map(scenarioOf);

function scenarioOf(wire: Wire): ChaosScenario {
  const name = `SERVE-${wire.name}`;
  return {
    name,
    title: `SIGKILL of nodes under clients of ${wire.name}: one turn and one answer for each key, wherever a stream was cut`,
    on: ["redis"],
    run: async (options) => {
      const { seed } = options;
      const counts: WireCounts = { streams: 0, cut: 0, again: 0, twice: 0, afterwards: 0, answers: 0, cancels: 0 };
      const clientOf = (place: ClientPlace): WireUser =>
        new WireUser({ wire, place, random: seededRandom(seed + place.number), counts });
      return await underKills(options, { surface: wire.surface, counts, clientOf }, (played) =>
        report({ name, seed }, counts, played),
      );
    },
  };
}

async function report(
  run: Pick<ChaosOptions, "seed"> & { readonly name: string },
  { cut, again, ...counts }: WireCounts,
  { clients, pool, servers, place }: Played<WireUser>,
): Promise<ChaosReport> {
  const trees = await evidenceOf(place);
  const exchanges = clients.flatMap((client) => client.exchanges);
  const ends = exchanges.map(({ hearings }) => hearings[0]?.ends.at(-1)?.state);
  const violations = [
    ...pool.faults,
    ...wireViolations(clients, { trees, attempts: servers.ledger.log.lines() }),
    ...trees.flatMap((tree) => auditTree(servers, tree)),
  ];
  return reportOf(
    run,
    {
      operations: exchanges.length,
      succeeded: ends.filter((state) => state === "completed" || state === "canceled").length,
      violations,
    },
    {
      deaths: pool.kills.length,
      clients: clients.length,
      conversations: trees.length,
      cutStreams: cut,
      askedAgain: again,
      ...counts,
      canceled: ends.filter((state) => state === "canceled").length,
      givenUp: ends.filter((state) => state === "failed").length,
      locksLost: pool.locksLost,
    },
  );
}

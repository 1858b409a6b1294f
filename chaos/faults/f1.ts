import { setTimeout as delay } from "node:timers/promises";
import { TroupeError, type TurnResult } from "../../src/index.ts";
import { witnessViolations } from "../checks/witness-checks.ts";
import { journalViolations } from "../../src/testing/simulation/journal-checks.ts";
import { restViolations } from "../../src/testing/simulation/rest-checks.ts";
import { type TreeEvidence } from "../../src/testing/simulation/evidence.ts";
import { evidenceOf } from "../evidence.ts";
import { taskPrefix } from "../model/script.ts";
import { type ChaosOptions, type ChaosReport, type ChaosScenario, reportOf } from "../scenario.ts";
import { seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { summaryOf } from "../summary.ts";
import type { Kill } from "../workers/pool.ts";
import { recoveriesOf } from "../workers/recovery.ts";
import { withWorkers, type WorkersStage } from "../workers/stage.ts";
import { auditEnd } from "./f2-round.ts";

const KILLS = 500;
const SHORT_KILLS = 5;
const TURNS_A_KILL = 4;
const LEASE_MS = 2_000;
/** After this many leases, no agent may be without an owner. */
const LEASES = 3;
const LANES = 8;
const WORKERS = 3;
/** Time between two kills, in milliseconds. */
const SHORTEST_GAP_MS = 300;
const LONGEST_GAP_MS = 1_500;
const size = { workers: WORKERS, agents: 20, calls: 8, leaseMs: LEASE_MS } as const;
/** A turn that takes longer is lost. */
const LOST_MS = 120_000;

/** Kills three workers with SIGKILL at random moments, one after the other. A round is one kill. */
export const f1: ChaosScenario = {
  name: "F1",
  title:
    "SIGKILL of workers at random moments: no turn lost, none committed twice, none without an owner after 3 leases",
  on: ["redis", "postgres"],
  run: runKilledWorkers,
};

export interface Sent {
  readonly agentId: string;
  readonly status: TurnResult["status"] | "lost";
  readonly words: string;
}

export async function runKilledWorkers(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, short, folder, progress } = options;
  const kills = options.rounds ?? (short ? SHORT_KILLS : KILLS);
  return await withWorkers(folder, { ...size, stores: options.stores }, async (stage) => {
    const random = seededRandom(seed);
    const sent: Sent[] = [];
    let begun = 0;
    const lane = async (): Promise<void> => {
      while (begun < kills * TURNS_A_KILL || stage.pool.kills.length < kills) {
        begun += 1;
        sent.push(await runTurn(stage, "foreman", `f1-${begun}`));
      }
    };
    const killer = async (): Promise<void> => {
      while (stage.pool.kills.length < kills) {
        await delay(random.between(SHORTEST_GAP_MS, LONGEST_GAP_MS));
        // Not faster than turns end and workers start, so that each kill interrupts work and other workers can take it
        // over.
        const isDue = sent.length >= (stage.pool.kills.length - 1) * TURNS_A_KILL;
        if (!isDue || stage.pool.size < WORKERS || !stage.pool.kill(random)) continue;
        const deaths = stage.pool.kills.length;
        if (deaths % 20 === 0) progress(`${deaths}/${kills}: ${sent.length} turns`);
      }
    };
    await Promise.all([killer(), ...Array.from({ length: LANES }, lane)]);
    await stage.pool.drain();
    return await report(stage, sent, seed);
  });
}

/** Runs the first turn of an agent. Retries if the stores reject a command as retryable. */
export async function runTurn({ client }: WorkersStage, name: string, agentId: string): Promise<Sent> {
  for (;;) {
    try {
      const agent = await client.agent(name, { agentId });
      await agent.start();
      const turn = agent.openTurn() ?? agent.executeTurn(`${taskPrefix}${agentId}`);
      const lost = delay(LOST_MS, undefined, { ref: false }).then(() => undefined);
      const result = await Promise.race([turn.result, lost]);
      if (!result) return { agentId, status: "lost", words: `its turn had not ended after ${LOST_MS / 1_000} s` };
      return {
        agentId,
        status: result.status,
        words: `${result.stopReason}: ${result.signal?.message ?? result.text}`,
      };
    } catch (error) {
      if (!(error instanceof TroupeError) || !error.retryable) throw error;
      await delay(50);
    }
  }
}

/** A turn that was given up leaves calls without a result; everything else must hold. */
export function auditTree(servers: WorkersStage["servers"], tree: TreeEvidence): string[] {
  const isGivenUp = tree.agents.some(({ entries }) =>
    entries.some((entry) => entry.type === "turn.ended" && entry.outcome !== "completed"),
  );
  if (isGivenUp) return [...restViolations(tree), ...tree.agents.flatMap(journalViolations)];
  // A worker that stalled on a busy machine was considered dead. The process that settled its call could not know the
  // worker's later effects.
  const settledAt = new Map(
    tree.agents.flatMap(({ entries }) =>
      entries.flatMap((entry) => (entry.type === "tool.settled" ? [[entry.callId, entry.at] as const] : [])),
    ),
  );
  return auditEnd(servers, tree, ({ key, at }) => at > (settledAt.get(key) ?? at));
}

async function report(stage: WorkersStage, sent: readonly Sent[], seed: number): Promise<ChaosReport> {
  const { pool } = stage;
  return await reportOfDeaths(stage, sent, {
    name: f1.name,
    seed,
    deaths: pool.kills,
    mostLeases: LEASES,
    figures: {},
  });
}

export interface Deaths {
  readonly name: string;
  readonly seed: number;
  readonly deaths: readonly Kill[];
  /** Another worker must own the agents of a dead worker after at most `LEASES` leases. */
  readonly mostLeases: number;
  readonly figures: Readonly<Record<string, unknown>>;
}

/** Reports the outcomes of the turns of killed workers, and how long their agents had no owner. */
export async function reportOfDeaths(
  stage: WorkersStage,
  sent: readonly Sent[],
  { name, seed, deaths, mostLeases, figures }: Deaths,
): Promise<ChaosReport> {
  const { place, pool } = stage;
  const trees = await evidenceOf(place);
  const agents = trees.flatMap((tree) => tree.agents);
  const lines = stage.witnessLines();
  const recoveries = recoveriesOf(agents, lines, deaths, pool.taken).filter(({ wasOpen }) => wasOpen);
  const late = recoveries.filter(({ ms }) => ms !== null && ms > mostLeases * LEASE_MS);
  const stored = new Set(trees.map(({ rootAgentId }) => rootAgentId));
  const violations = [
    ...pool.faults,
    ...sent.flatMap(({ agentId, status, words }) => (status === "lost" ? [`${agentId}: ${words}`] : [])),
    ...sent.flatMap(({ agentId }) => (stored.has(agentId) ? [] : [`${agentId}: it is gone`])),
    ...trees.flatMap((tree) => auditTree(stage.servers, tree)),
    ...witnessViolations(agents, lines),
    ...late.map(
      ({ agentId, ms }) => `${agentId}: it had no owner for ${Math.round(ms ?? 0)} ms after its worker's death`,
    ),
  ];
  const givenUp = sent.filter(({ status }) => status === "stopped" || status === "failed");
  return reportOf(
    { name, seed },
    { operations: sent.length, succeeded: sent.filter(({ status }) => status === "completed").length, violations },
    {
      deaths: deaths.length,
      ...figures,
      takenUpMs: summaryOf(recoveries.flatMap(({ ms }) => ms ?? [])),
      locksLost: pool.locksLost,
      givenUp: givenUp.length,
      firstGivenUp: givenUp.slice(0, 3).map(({ agentId, words }) => `${agentId}: ${words}`),
      drainMs: pool.drains.map(({ milliseconds }) => milliseconds),
    },
  );
}

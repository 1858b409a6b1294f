import { setTimeout as delay } from "node:timers/promises";
import { type TreeEvidence } from "../../src/testing/simulation/evidence.ts";
import { evidenceOf } from "../evidence.ts";
import { taskPrefix } from "../model/script.ts";
import { type ChaosOptions, type ChaosReport, type ChaosScenario, reportOf } from "../scenario.ts";
import { seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { withWorkers, type WorkersStage } from "../workers/stage.ts";
import { TOOL_QUEUE } from "../workers/team.ts";
import { auditEnd } from "./f2-round.ts";

const ROUNDS = 1_000;
const SHORT_ROUNDS = 40;
const LEASE_MS = 4_000;
/** Queued calls in one turn of the foreman and its hand. */
const CALLS_A_TURN = 4;
const LANES = 6;
/** Jobs that take longer are stuck. */
const STUCK_MS = 60_000;

/** Adds jobs of ended calls again, and wakes idle agents. A round is one job. */
export const f12: ChaosScenario = {
  name: "F12",
  title: "the same job added again after its removal: no effect more, no journal entry more",
  on: ["redis"],
  run: runAgain,
};

export async function runAgain(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, short, folder, progress } = options;
  const rounds = options.rounds ?? (short ? SHORT_ROUNDS : ROUNDS);
  return await withWorkers(folder, { workers: 2, agents: 20, calls: 10, leaseMs: LEASE_MS }, async (stage) => {
    const left = Array.from({ length: Math.ceil(rounds / CALLS_A_TURN) }, (_, index) => `f12-${index + 1}`);
    const lane = async (): Promise<void> => {
      for (let agentId = left.shift(); agentId !== undefined; agentId = left.shift()) await runTurn(stage, agentId);
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    const before = await evidenceOf(stage.place);
    const attempts = stage.servers.ledger.log.lines().length;
    progress(`${before.length} turns have ended, ${attempts} attempts`);
    const added = await addAgain(stage, before, { rounds, seed });
    const stuck = await untilDone(stage);
    const after = await evidenceOf(stage.place);
    const more = stage.servers.ledger.log.lines().slice(attempts);
    const violations = [
      ...stuck,
      ...more.map(({ key, applied }) => `${key} was attempted again${applied ? ", and had an effect" : ""}`),
      ...changes(before, after),
      ...after.flatMap((tree) => auditEnd(stage.servers, tree)),
      ...stage.pool.faults,
    ];
    return reportOf(
      { name: f12.name, seed },
      { operations: added, succeeded: added, violations },
      { effectsMore: more.length },
    );
  });
}

async function runTurn({ client }: WorkersStage, agentId: string): Promise<void> {
  const agent = await client.agent("foreman", { agentId });
  await agent.start();
  await agent.executeTurn(`${taskPrefix}${agentId}`).result;
}

/** Adds the job of an ended call again, sometimes twice at once, and sometimes wakes its agent. */
async function addAgain(
  { client }: WorkersStage,
  trees: readonly TreeEvidence[],
  { rounds, seed }: { readonly rounds: number; readonly seed: number },
): Promise<number> {
  const random = seededRandom(seed);
  const calls = trees.flatMap(({ agents }) =>
    agents.flatMap(({ agentId, record, entries }) =>
      entries.flatMap((entry) =>
        entry.type === "tool.started" && entry.queue !== undefined
          ? [{ tenant: record.tenant, agentId, callId: entry.callId, attempt: entry.attempt, effect: entry.effect }]
          : [],
      ),
    ),
  );
  let added = 0;
  for (const { effect, ...call } of calls.slice(0, rounds)) {
    const job = { ...call, isRepeatable: effect !== "once" };
    await client.queues.add(TOOL_QUEUE, job);
    if (random.next() < 0.2) await client.queues.add(TOOL_QUEUE, job);
    if (random.next() < 0.3) await client.queues.wake(call);
    added += 1;
  }
  return added;
}

async function untilDone({ client }: WorkersStage): Promise<string[]> {
  const end = performance.now() + STUCK_MS;
  for (;;) {
    const counts = await client.queues.counts([TOOL_QUEUE, "wake"]);
    const open = counts.filter(({ waiting, active, delayed }) => waiting + active + delayed > 0);
    if (open.length === 0)
      return counts.flatMap(({ queue, dead }) => (dead > 0 ? [`${dead} dead letters of ${queue}`] : []));
    if (performance.now() > end) return open.map((one) => `jobs that are not done: ${JSON.stringify(one)}`);
    await delay(50);
  }
}

function changes(before: readonly TreeEvidence[], after: readonly TreeEvidence[]): string[] {
  const later = new Map(after.flatMap(({ agents }) => agents.map((agent) => [agent.agentId, agent.entries.length])));
  return before.flatMap(({ agents }) =>
    agents.flatMap(({ agentId, entries }) =>
      later.get(agentId) === entries.length
        ? []
        : [`${agentId}: ${entries.length} entries, then ${later.get(agentId)}`],
    ),
  );
}
